"""What the book adds to Sphinx; ``_config.yml`` lists the modules that register themselves."""
