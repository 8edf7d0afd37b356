"""The service that receives releases."""
