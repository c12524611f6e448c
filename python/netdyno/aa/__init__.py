"""The A/A control: the same contestant under two names must come out the same (docs/adr/aa-control.md)."""
