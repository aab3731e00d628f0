{{/* A volume claim: list of root, suffix of the name, volume's values. */}}
{{- define "runtime.claim" -}}
{{- $root := index . 0 }}
{{- $volume := index . 2 -}}
apiVersion: v1
kind: PersistentVolumeClaim
metadata:
  name: {{ include "runtime.name" $root }}-{{ index . 1 }}
  namespace: {{ $root.Release.Namespace }}
  labels: {{- include "runtime.labels" $root | nindent 4 }}
spec:
  accessModes: [ReadWriteOnce]
  {{- with $volume.storageClassName }}
  storageClassName: {{ . }}
  {{- end }}
  resources:
    requests:
      storage: {{ $volume.size }}
{{- end }}
