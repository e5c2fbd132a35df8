"""Code shared by all verbs: options, `--set`, starting a flow, the progress line, log lines."""
