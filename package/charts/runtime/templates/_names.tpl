{{/* The release's name, which apis/names derives likewise. */}}
{{- define "runtime.name" -}}
{{ .Values.tenant }}-devops
{{- end }}

{{/* What the pods are found by. Never changes. */}}
{{- define "runtime.selector" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ include "runtime.name" . }}
{{- end }}

{{/* Labels of every object. */}}
{{- define "runtime.labels" -}}
{{ include "runtime.selector" . }}
app.kubernetes.io/component: devops
app.kubernetes.io/part-of: steading
app.kubernetes.io/version: {{ .Values.version | trunc 63 | trimAll "-_." | quote }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version | replace "+" "_" }}
{{- end }}
