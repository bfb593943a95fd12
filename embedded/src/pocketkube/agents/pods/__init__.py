"""What a kubelet does for one pod: does its node take it, how does it run, what is its status."""
