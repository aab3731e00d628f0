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
{{- with $wanted.caBundle }}{{ include "steading.caBundle" (dict "pod" $deployment.template.spec "configMap" .) }}{{ end -}}
{{ toYaml $object }}
{{- else -}}
{{ .document }}
{{- end -}}
{{- end -}}
{{- /* Puts the certificates of a ConfigMap into a pod, whose process trusts them besides those of its image. */ -}}
{{- define "steading.caBundle" -}}
{{- $folder := "/etc/steading/ca" -}}
{{- $container := first .pod.containers -}}
{{- $_ := set $container "env" (append $container.env (dict "name" "SSL_CERT_DIR" "value" $folder)) -}}
{{- $_ := set $container "volumeMounts" (append $container.volumeMounts (dict "name" "ca" "mountPath" $folder "readOnly" true)) -}}
{{- $_ := set .pod "volumes" (append .pod.volumes (dict "name" "ca" "configMap" (dict "name" .configMap))) -}}
{{- end -}}
