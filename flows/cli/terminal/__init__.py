"""Code shared by all commands: options, `--set`, starting a flow, printing, progress, log lines."""
