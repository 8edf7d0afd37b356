"""From a series to features on a device, in NumPy alone."""
