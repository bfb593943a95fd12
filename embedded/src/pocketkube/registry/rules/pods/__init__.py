"""The rules of pods and of templates of pods: defaults, checks, updates."""
