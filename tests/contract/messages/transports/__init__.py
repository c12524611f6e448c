"""One module for each transport that carries messages, with one class that derives from `Transport`."""
