"""Runs as a site that anybody can host: an index, and for each run a page, its report and its export. All links are
relative, and nothing of it names a path, a user or a host of the machine that it was made on."""
