"""One module per page of the studio: it reads the workspace and fills a template."""
