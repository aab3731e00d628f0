{{- /* A document of runtimes/ with what the values say about a process put into its DeploymentRuntimeConfig. */ -}}
{{- define "steading.runtime" -}}
{{- $object := fromYaml .document -}}
{{- $wanted := dict -}}
{{- if eq $object.kind "DeploymentRuntimeConfig" -}}
{{- $wanted = get .runtimes $object.metadata.name | default dict -}}
{{- end -}}
{{- if $wanted -}}
{{- $deployment := $object.spec.deploymentTemplate.spec -}}
{{- with $wanted.replicas }}{{ $_ := set $deployment "replicas" (int .) }}{{ end -}}
{{- with $wanted.resources }}{{ $_ := mustMergeOverwrite (first $deployment.template.spec.containers).resources . }}{{ end -}}
{{ toYaml $object }}
{{- else -}}
{{ .document }}
{{- end -}}
{{- end -}}
