"""Tables: one series a row, or one time step a row, with labels, persons and times beside."""
