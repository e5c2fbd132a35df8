"""What all verbs share: options, `--set`, starting a flow, the progress line, log lines."""
