{{- /* Each section of a page is found on its own. A script, because a page from a disk may not fetch. */ -}}
{{- $sections := slice -}}
{{- range where site.Pages "Kind" "ne" "404" -}}
  {{- $page := . -}}
  {{- $title := partial "title.html" . -}}
  {{- $marked := replaceRE `<h[1-6] id="([^"]*)">` "\x00$1\x01" .Content -}}
  {{- $marked = replaceRE `<a class="anchor".*?</a>` "" $marked -}}
  {{- range after 1 (split $marked "\x00") -}}
    {{- $parts := split . "\x01" -}}
    {{- $heading := split (index $parts 1) "</h" -}}
    {{- $text := replaceRE `<a id="([^"]*)"></a>` "$1 " (delimit (after 1 $heading) " ") -}}
    {{- $text = $text | replaceRE `^[1-6]>` "" | replaceRE `</(td|th|li|p|tr)>` " " | plainify | htmlUnescape | replaceRE `\s+` " " -}}
    {{- $sections = $sections | append (dict "page" $title "url" $page.RelPermalink "anchor" (index $parts 0) "title" (index $heading 0 | plainify | htmlUnescape) "text" $text) -}}
  {{- end -}}
{{- end -}}
window.searchIndex = {{ $sections | jsonify }};
