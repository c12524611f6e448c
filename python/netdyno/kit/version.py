"""The version of the whole project; CMakeLists.txt and packages/wheel read it here."""

VERSION = "1.0.0"
