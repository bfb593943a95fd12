"""Who we are to the API server: kubeconfigs, service accounts, plugins, files that are renewed."""
