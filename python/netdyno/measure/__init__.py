"""What happens on the machine: processes, links, audits, trials, runs, several machines; each uses those before it."""
