{{/* A Kubernetes quantity as a number. */}}
{{- define "runtime.number" -}}
{{- $q := toString . }}
{{- $suffix := regexReplaceAll "^[0-9.]+([eE][+-]?[0-9]+)?" $q "" }}
{{- $factors := dict "" 1.0 "n" 1e-9 "u" 1e-6 "m" 1e-3 "k" 1e3 "M" 1e6 "G" 1e9 "T" 1e12 "P" 1e15 "E" 1e18
    "Ki" 1024.0 "Mi" 1048576.0 "Gi" 1073741824.0 "Ti" 1099511627776.0 "Pi" 1125899906842624.0 "Ei" 1152921504606846976.0 }}
{{- mulf (float64 (trimSuffix $suffix $q)) (get $factors $suffix) }}
{{- end }}

{{/* Refuses a release whose parts together are more than the namespace may have. */}}
{{- define "runtime.fit" -}}
{{- $used := dict "cpu" (list .Values.runtime.resources.limits.cpu) "memory" (list .Values.runtime.resources.limits.memory) "storage" (list .Values.home.size) }}
{{- if .Values.docker.enabled }}
{{- $_ := set $used "cpu" (append $used.cpu .Values.docker.resources.limits.cpu) }}
{{- $_ := set $used "memory" (append $used.memory .Values.docker.resources.limits.memory) }}
{{- $_ := set $used "storage" (append $used.storage .Values.docker.volume.size) }}
{{- end }}
{{- range $resource, $cap := .Values.caps }}
{{- $sum := 0.0 }}
{{- range get $used $resource }}
{{- $sum = addf $sum (float64 (include "runtime.number" .)) }}
{{- end }}
{{- if gt $sum (float64 (include "runtime.number" $cap)) }}
{{- fail (printf "cannot deploy the runtime: it needs %s %s, the environment has %v: ask for a larger size" $resource (join " + " (get $used $resource)) $cap) }}
{{- end }}
{{- end }}
{{- end }}
