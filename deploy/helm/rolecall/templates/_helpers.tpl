{{- define "rolecall.name" -}}
{{- if contains "rolecall" .Release.Name }}{{ .Release.Name | trunc 50 | trimSuffix "-" }}{{ else }}{{ printf "%s-rolecall" .Release.Name | trunc 50 | trimSuffix "-" }}{{ end -}}
{{- end }}

{{- define "rolecall.selector" -}}
app.kubernetes.io/name: rolecall
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "rolecall.labels" -}}
{{ include "rolecall.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end }}

{{- define "rolecall.image" -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end }}

{{/* The path of the public URL is the base of every route, also of the probes. */}}
{{- define "rolecall.base" -}}
{{- with index .Values.config "public-url" }}{{ (urlParse .).path | trimSuffix "/" }}{{ end -}}
{{- end }}

{{- define "rolecall.host" -}}
{{- if .Values.ingress.host }}{{ .Values.ingress.host }}{{ else }}{{ (urlParse (required "ingress.host or config.public-url is required" (index .Values.config "public-url"))).hostname }}{{ end -}}
{{- end }}

{{- define "rolecall.podSecurity" -}}
runAsNonRoot: true
runAsUser: 65532
runAsGroup: 65532
fsGroup: 65532
fsGroupChangePolicy: OnRootMismatch
seccompProfile: {type: RuntimeDefault}
{{- end }}

{{- define "rolecall.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: {drop: [ALL]}
{{- end }}

{{/* The files of the secrets, in one volume. The arguments "database" and "direct" refer to URLs. */}}
{{- define "rolecall.secretVolume" -}}
- name: secrets
  projected:
    defaultMode: 0440
    sources:
      {{- if .database.name }}
      - secret: {name: {{ .database.name }}, items: [{key: {{ .database.key }}, path: database-url}]}
      {{- end }}
      {{- if .direct.name }}
      - secret: {name: {{ .direct.name }}, items: [{key: {{ .direct.key }}, path: direct-database-url}]}
      {{- end }}
      {{- with .root.Values.secrets.instanceKeys }}
      {{- if .name }}
      - secret: {name: {{ .name }}, items: [{key: {{ .key }}, path: keys}]}
      {{- end }}
      {{- end }}
      {{- with .root.Values.secrets.smtp }}
      {{- if .name }}
      - secret: {name: {{ .name }}, items: [{key: {{ .key }}, path: smtp-url}]}
      {{- end }}
      {{- end }}
      {{- with .root.Values.secrets.mailWebhookKey }}
      {{- if .name }}
      - secret: {name: {{ .name }}, items: [{key: {{ .key }}, path: mail-webhook-key}]}
      {{- end }}
      {{- end }}
{{- end }}

{{- define "rolecall.databaseEnv" -}}
{{- if eq .Values.store "postgres" }}
- {name: ROLECALL_DATABASE, value: ""}
- {name: ROLECALL_DATABASE_FILE, value: /run/secrets/rolecall/database-url}
{{- else }}
- {name: ROLECALL_DATABASE, value: /data/rolecall.db}
{{- end }}
{{- if .Values.secrets.instanceKeys.name }}
- {name: ROLECALL_SECRET_KEY_FILE, value: /run/secrets/rolecall/keys}
{{- end }}
{{- end }}

{{/* The pod of a node. */}}
{{- define "rolecall.pod" -}}
metadata:
  labels:
    {{- include "rolecall.selector" . | nindent 4 }}
    {{- with .Values.podLabels }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
  annotations:
    checksum/config: {{ toYaml .Values.config | sha256sum }}
    {{- if .Values.metrics.enabled }}
    prometheus.io/scrape: "true"
    prometheus.io/port: {{ .Values.metrics.port | quote }}
    {{- end }}
    {{- with .Values.podAnnotations }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
spec:
  automountServiceAccountToken: false
  enableServiceLinks: false
  # SIGTERM starts the drain of the program, so the pod needs no preStop hook.
  terminationGracePeriodSeconds: {{ add .Values.drainSeconds 40 }}
  {{- with .Values.imagePullSecrets }}
  imagePullSecrets: {{ toYaml . | nindent 4 }}
  {{- end }}
  securityContext: {{ include "rolecall.podSecurity" . | nindent 4 }}
  containers:
    - name: rolecall
      image: {{ include "rolecall.image" . }}
      imagePullPolicy: {{ .Values.image.pullPolicy }}
      args: [serve]
      securityContext: {{ include "rolecall.containerSecurity" . | nindent 8 }}
      env:
        - {name: ROLECALL_CONFIG, value: /etc/rolecall/rolecall.yaml}
        - {name: ROLECALL_LISTEN, value: ":8080"}
        {{- include "rolecall.databaseEnv" . | nindent 8 }}
        {{- if and (eq .Values.store "postgres") .Values.secrets.directDatabase.name }}
        - {name: ROLECALL_DIRECT_DATABASE_FILE, value: /run/secrets/rolecall/direct-database-url}
        {{- end }}
        - {name: ROLECALL_OPERATOR_LISTEN, value: ":{{ .Values.operator.port }}"}
        - {name: ROLECALL_DRAIN, value: {{ printf "%ds" (int .Values.drainSeconds) }}}
        {{- if .Values.migration.enabled | and (eq .Values.store "postgres") }}
        - {name: ROLECALL_NO_MIGRATE, value: "true"}
        {{- end }}
        {{- if .Values.metrics.enabled }}
        - {name: ROLECALL_METRICS_LISTEN, value: ":{{ .Values.metrics.port }}"}
        {{- end }}
        {{- if .Values.secrets.smtp.name }}
        - {name: ROLECALL_SMTP_FILE, value: /run/secrets/rolecall/smtp-url}
        {{- end }}
        {{- if .Values.secrets.mailWebhookKey.name }}
        - {name: ROLECALL_MAIL_WEBHOOK_KEY_FILE, value: /run/secrets/rolecall/mail-webhook-key}
        {{- end }}
        {{- if .Values.secrets.tls.name }}
        - {name: ROLECALL_TLS_CERT, value: /run/secrets/tls/tls.crt}
        - {name: ROLECALL_TLS_KEY, value: /run/secrets/tls/tls.key}
        {{- end }}
        {{- with .Values.env }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
      ports:
        - {name: http, containerPort: 8080}
        - {name: operator, containerPort: {{ .Values.operator.port }}}
        {{- if .Values.metrics.enabled }}
        - {name: metrics, containerPort: {{ .Values.metrics.port }}}
        {{- end }}
      {{- $scheme := ternary "HTTPS" "HTTP" (ne .Values.secrets.tls.name "") }}
      startupProbe:
        exec: {command: [/rolecall, health]}
        timeoutSeconds: 6
        periodSeconds: 2
        failureThreshold: 150
      livenessProbe:
        httpGet: {path: {{ include "rolecall.base" . }}/livez, port: http, scheme: {{ $scheme }}}
        periodSeconds: 10
        timeoutSeconds: 5
        failureThreshold: 6
      readinessProbe:
        httpGet: {path: {{ include "rolecall.base" . }}/readyz, port: http, scheme: {{ $scheme }}}
        periodSeconds: 2
        timeoutSeconds: 5
        failureThreshold: 2
      resources: {{ toYaml .Values.resources | nindent 8 }}
      volumeMounts:
        - {name: config, mountPath: /etc/rolecall, readOnly: true}
        - {name: secrets, mountPath: /run/secrets/rolecall, readOnly: true}
        {{- if .Values.secrets.tls.name }}
        - {name: tls, mountPath: /run/secrets/tls, readOnly: true}
        {{- end }}
        {{- if eq .Values.store "sqlite" }}
        - {name: data, mountPath: /data}
        {{- end }}
        {{- with .Values.volumeMounts }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
  volumes:
    - name: config
      configMap: {name: {{ include "rolecall.name" . }}}
    {{- $database := ternary .Values.secrets.database dict (eq .Values.store "postgres") }}
    {{- $direct := ternary .Values.secrets.directDatabase dict (eq .Values.store "postgres") }}
    {{- include "rolecall.secretVolume" (dict "root" . "database" $database "direct" $direct) | nindent 4 }}
    {{- if .Values.secrets.tls.name }}
    - name: tls
      secret: {secretName: {{ .Values.secrets.tls.name }}, defaultMode: 0440}
    {{- end }}
    {{- with .Values.volumes }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
  {{- if eq .Values.store "postgres" }}
  topologySpreadConstraints:
    - maxSkew: 1
      topologyKey: kubernetes.io/hostname
      whenUnsatisfiable: ScheduleAnyway
      labelSelector:
        matchLabels: {{ include "rolecall.selector" . | nindent 10 }}
  {{- end }}
  {{- with .Values.nodeSelector }}
  nodeSelector: {{ toYaml . | nindent 4 }}
  {{- end }}
  {{- with .Values.tolerations }}
  tolerations: {{ toYaml . | nindent 4 }}
  {{- end }}
  {{- with .Values.affinity }}
  affinity: {{ toYaml . | nindent 4 }}
  {{- end }}
{{- end }}
