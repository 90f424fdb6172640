{{/*
The gate as a sidecar of your pod: put these under initContainers and volumes of its spec, with the chart as a dependency in
mode sidecar. Your container must run as another user than 10001, without privilege escalation, without capabilities and as
non-root. It mounts the certificates for clients as docs/deploy.md says.

  initContainers:
    {{- include "robotsgate.sidecar.containers" .Subcharts.robotsgate | nindent 4 }}
  volumes:
    {{- include "robotsgate.sidecar.volumes" .Subcharts.robotsgate | nindent 4 }}
*/}}
{{- define "robotsgate.sidecar.containers" -}}
# It ends before any other container starts. If it fails, none does.
- name: robotsgate-redirect
  image: {{ .Values.sidecar.nftablesImage | quote }}
  imagePullPolicy: {{ .Values.imagePullPolicy }}
  command: [nft, -f, /rules/rules.nft]
  securityContext:
    runAsUser: 0
    runAsNonRoot: false # whatever the pod says
    allowPrivilegeEscalation: false
    capabilities: {drop: [ALL], add: [NET_ADMIN]}
  volumeMounts:
    - {name: robotsgate-rules, mountPath: /rules, readOnly: true}
- {{- include "robotsgate.container" . | nindent 2 }}
  restartPolicy: Always # a sidecar: the crawler starts when it has started
  startupProbe: # with the image of the Dockerfile, which has wget
    exec: {command: [wget, -q, -Y, "off", -O, /dev/null, "http://127.0.0.1:9310/healthz"]}
    periodSeconds: 1
    failureThreshold: 60
  securityContext:
    runAsUser: 10001
    runAsGroup: 10001
    runAsNonRoot: true
    {{- include "robotsgate.containerSecurity" . | nindent 4 }}
  volumeMounts:
    - {name: robotsgate-config, mountPath: /etc/robotsgate, readOnly: true}
    - {name: robotsgate-ca, mountPath: /ca, readOnly: true}
    - {name: robotsgate-data, mountPath: /data}
{{- end }}

{{- define "robotsgate.sidecar.volumes" -}}
- name: robotsgate-rules
  configMap:
    name: {{ include "robotsgate.name" . }}
    items: [{key: rules.nft, path: rules.nft}]
- name: robotsgate-config
  configMap:
    name: {{ include "robotsgate.name" . }}
    items: [{key: config.yaml, path: config.yaml}]
- name: robotsgate-ca
  secret: {secretName: {{ .Values.caSecret }}}
- name: robotsgate-data
  emptyDir: {}
{{- end }}
