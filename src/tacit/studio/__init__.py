"""The web application: data, plans, trainings, pictures and budgets in one workspace folder."""
