"""Who we are to the API server, and by which proxy: kubeconfigs, service accounts, plugins."""
