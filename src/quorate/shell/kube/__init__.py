"""The only code that speaks HTTP to Kubernetes. Bytes flow out, own errors flow out; no policy."""
