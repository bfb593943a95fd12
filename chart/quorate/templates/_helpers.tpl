{{- /* The image: by digest where one is given, else by tag, else the version that the chart is of. */ -}}
{{- define "quorate.image" -}}
{{- $image := .Values.image -}}
{{- $tag := $image.tag | default (ternary "" .Chart.AppVersion (ne $image.digest "")) -}}
{{- $image.repository }}{{ with $tag }}:{{ . }}{{ end }}{{ with $image.digest }}@{{ . }}{{ end -}}
{{- end -}}

{{- /* The configuration: the shipped text, with its comments, unless values change it. */ -}}
{{- define "quorate.config" -}}
{{- $shipped := tpl (.Files.Get "files/config.yaml") . | trim -}}
{{- if .Values.config -}}
{{- mergeOverwrite (fromYaml $shipped) (deepCopy .Values.config) | toYaml -}}
{{- else -}}
{{- $shipped -}}
{{- end -}}
{{- end -}}

{{- /* A changed configuration restarts the pods. */ -}}
{{- define "quorate.podAnnotations" -}}
{{- $all := deepCopy .Values.podAnnotations -}}
{{- if .Values.config -}}
{{- $_ := set $all "quorate.dev/configuration" (include "quorate.config" . | sha256sum) -}}
{{- end -}}
{{- toYaml $all -}}
{{- end -}}
