{{- define "runner.image" -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end -}}

{{- define "wrapper.image" -}}
{{ .Values.wrapperImage.repository }}:{{ .Values.wrapperImage.tag | default .Chart.AppVersion }}
{{- end -}}
