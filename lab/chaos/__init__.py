"""Jobs whose processes, servers and disks die or fail, and whose results must be right in the end."""
