{{/* The name of everything: that of the release. A sidecar's release has another program's name. */}}
{{- define "robotsgate.name" -}}
{{- if eq .Values.mode "sidecar" }}{{ .Release.Name }}-robotsgate{{ else }}{{ .Release.Name }}{{ end }}
{{- end }}

{{- define "robotsgate.isFleet" -}}
{{- if eq .Values.mode "fleet" }}true{{ end }}
{{- end }}

{{/* config.yaml: what the chart needs, and the keys of the values. */}}
{{- define "robotsgate.config" -}}
{{- range list "listen" "listen_transparent" "data_dir" }}
{{- if hasKey $.Values.config . }}{{ fail (printf "config.%s is set by the chart" .) }}{{ end }}
{{- end }}
{{- if hasKey (.Values.config.admin | default dict) "listen" }}{{ fail "config.admin.listen is set by the chart" }}{{ end }}
{{- $config := include (ternary "robotsgate.sidecarConfig" "robotsgate.gateConfig" (eq .Values.mode "sidecar")) . | fromYaml -}}
{{- toYaml (mergeOverwrite $config (deepCopy .Values.config)) }}
{{- end }}

{{- define "robotsgate.gateConfig" -}}
listen: 0.0.0.0:9309
data_dir: /data
https:
  ca_cert: /ca/ca.pem
  ca_key: /ca/ca-key.pem
{{- if include "robotsgate.isFleet" . }}
fleet:
  address: {{ .Values.fleet.address | default (printf "redis://gate:${FLEET_PASSWORD}@%s-valkey:6379" .Release.Name) | quote }}
  key_file: /fleet/fleet.key
{{- end }}
# For kubelet and Prometheus; the NetworkPolicy excludes others.
admin:
  listen: 0.0.0.0:9310
# Until every node knows that the pod ends.
limits:
  shutdown_delay: 10s
log:
  format: json
  audit: /data/audit.jsonl
{{- end }}

{{- define "robotsgate.sidecarConfig" -}}
listen: 127.0.0.1:9309
listen_transparent: "[::]:9311"
data_dir: /data
https:
  ca_cert: /ca/ca.pem
  ca_key: /ca/ca-key.pem
admin:
  listen: 127.0.0.1:9310
{{- end }}

{{/* What every container of the gate has. */}}
{{- define "robotsgate.container" -}}
name: robotsgate
image: {{ .Values.image | quote }}
imagePullPolicy: {{ .Values.imagePullPolicy }}
args: [serve, -c, /etc/robotsgate/config.yaml]
{{- with .Values.envFrom }}
envFrom:
  {{- toYaml . | nindent 2 }}
{{- end }}
resources:
  {{- toYaml .Values.resources | nindent 2 }}
{{- end }}

{{- define "robotsgate.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: {drop: [ALL]}
{{- end }}

{{/* The rule of a NetworkPolicy for the cluster's DNS. */}}
{{- define "robotsgate.dns" -}}
- to:
    {{- toYaml .Values.networkPolicy.dns.to | nindent 4 }}
  ports:
    - {protocol: UDP, port: {{ .Values.networkPolicy.dns.port }}}
    - {protocol: TCP, port: {{ .Values.networkPolicy.dns.port }}}
{{- end }}
