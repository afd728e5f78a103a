{{/* The namespace of one part. Arg: dict "part" "root". */}}
{{- define "lifeboat.namespace" -}}
{{- if eq .part "agent" }}{{ .root.Values.agent.namespace | default .root.Release.Namespace }}{{ else }}{{ .root.Release.Namespace }}{{ end }}
{{- end }}

{{/* The labels that select the pods of one part. Arg: dict "part" "root". */}}
{{- define "lifeboat.selector" -}}
app.kubernetes.io/name: lifeboat
app.kubernetes.io/instance: {{ .root.Release.Name | quote }}
app.kubernetes.io/component: {{ .part }}
{{- end }}

{{/* The labels that are the chart's own. Arg: dict "part" "root". */}}
{{- define "lifeboat.ownLabels" -}}
{{ include "lifeboat.selector" . }}
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
app.kubernetes.io/part-of: lifeboat
helm.sh/chart: {{ printf "%s-%s" .root.Chart.Name .root.Chart.Version | replace "+" "_" }}
{{- end }}

{{/* The labels of every object. Arg: dict "part" "root". */}}
{{- define "lifeboat.labels" -}}
{{ include "lifeboat.ownLabels" . }}
{{- with .root.Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{/* Labels and annotations of an object. Arg: dict "part" "root"; "labels" and
"annotations" are of this object only. */}}
{{- define "lifeboat.metadata" -}}
labels:
  {{- .labels | default (include "lifeboat.labels" . | fromYaml) | toYaml | nindent 2 }}
{{- with merge (deepCopy (.annotations | default dict)) .root.Values.commonAnnotations }}
annotations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{- define "lifeboat.image" -}}
{{- $repository := required "image.repository is empty: write where lifeboatd's image is in your registry, such as --set image.repository=HOST/lifeboatd; no registry is assumed" .Values.image.repository -}}
{{- if .Values.image.digest -}}
{{ $repository }}@{{ .Values.image.digest }}
{{- else -}}
{{ $repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end }}
{{- end }}

{{- define "lifeboat.queueURL" -}}
{{- required "aws.queueURL is empty: write the URL of the SQS queue that `lifeboat aws setup` prints" .Values.aws.queueURL -}}
{{- end }}

{{/* Probes of /healthz and /readyz. Arg: the part's values. */}}
{{- define "lifeboat.probes" -}}
{{- $paths := dict "livenessProbe" "/healthz" "readinessProbe" "/readyz" "startupProbe" "/healthz" -}}
{{- $probes := dict -}}
{{- range $probe, $path := $paths -}}
{{- with get $ $probe -}}
{{- $get := dict "path" $path "port" "health" -}}
{{- if $.hostNetwork }}{{ $_ := set $get "host" "127.0.0.1" }}{{ end -}}
{{- $_ := set $probes $probe (merge (dict "httpGet" $get) .) -}}
{{- end -}}
{{- end -}}
{{ with $probes }}{{ toYaml . }}{{ end }}
{{- end }}

{{/* The fields of a pod that are values as they are. Arg: the part's values. */}}
{{- define "lifeboat.podFields" -}}
{{- $names := dict "terminationGracePeriodSeconds" "terminationGracePeriodSeconds" "podSecurityContext" "securityContext" "dnsConfig" "dnsConfig" "hostAliases" "hostAliases" "initContainers" "initContainers" "extraVolumes" "volumes" -}}
{{- $fields := dict -}}
{{- range $value, $field := $names -}}
{{- with get $ $value }}{{ $_ := set $fields $field . }}{{ end -}}
{{- end -}}
{{ with $fields }}{{ toYaml . }}{{ end }}
{{- end }}

{{/* The fields of a container that are values as they are. Arg: the part's values. */}}
{{- define "lifeboat.containerFields" -}}
resources:
  {{- toYaml .resources | nindent 2 }}
securityContext:
  {{- toYaml .securityContext | nindent 2 }}
{{- with .envFrom }}
envFrom:
{{ toYaml . }}
{{- end }}
{{- with .extraVolumeMounts }}
volumeMounts:
{{ toYaml . }}
{{- end }}
{{- end }}

{{/* Addresses to serve on; with hostNetwork never all addresses of the node. The kubelet
probes on the node. The brackets are for IPv6. Arg: the part's values. */}}
{{- define "lifeboat.healthAddress" -}}
{{ ternary "127.0.0.1" "" .hostNetwork }}:{{ .ports.health }}
{{- end }}

{{- define "lifeboat.metricsAddress" -}}
[$(POD_IP)]:{{ .ports.metrics }}
{{- end }}

{{- define "lifeboat.podIP" }}
- name: POD_IP
  valueFrom: {fieldRef: {fieldPath: status.podIP}}
{{- end }}

{{/* Where a pod runs. Arg: the part's values. */}}
{{- define "lifeboat.placement" -}}
nodeSelector:
{{ merge (dict "kubernetes.io/os" "linux") .nodeSelector | toYaml | indent 2 }}
{{- with .tolerations }}
tolerations:
{{ toYaml . }}
{{- end }}
{{- with .affinity }}
affinity:
{{ toYaml . | indent 2 }}
{{- end }}
{{- end }}

{{/* GOMEMLIMIT, unless there is no memory limit or extraEnv sets it. Arg: the part's values. */}}
{{- define "lifeboat.memoryLimit" -}}
{{- $set := false }}
{{- range .extraEnv }}{{ if eq .name "GOMEMLIMIT" }}{{ $set = true }}{{ end }}{{ end }}
{{- if and ((.resources).limits).memory (not $set) }}
- name: GOMEMLIMIT
  valueFrom: {resourceFieldRef: {resource: limits.memory}}
{{- end }}
{{- end }}
