package imds

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
)

// Handler is the metadata service of one instance, with or without power.
func (s *State) Handler(instanceID string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Server", "EC2ws")
		o := s.setting(instanceID)
		switch {
		case o.Off:
			fail(w, http.StatusForbidden)
		case o.Throttled || s.failsNow():
			fail(w, http.StatusServiceUnavailable)
		case r.Method == http.MethodPut && r.URL.Path == "/latest/api/token":
			s.putToken(w, r, instanceID)
		case r.Method == http.MethodGet || r.Method == http.MethodHead:
			s.get(w, r, instanceID)
		default:
			fail(w, http.StatusMethodNotAllowed)
		}
	})
}

func (s *State) get(w http.ResponseWriter, r *http.Request, instanceID string) {
	left, ok := s.admits(r, instanceID)
	if !ok {
		fail(w, http.StatusUnauthorized)
		return
	}
	s.mu.Lock()
	s.reads[instanceID]++
	s.mu.Unlock()
	in, ok := s.ec2.Instance(instanceID)
	if !ok {
		fail(w, http.StatusNotFound)
		return
	}
	content, ok := s.leaves(s.asShown(in)).find(strings.Trim(r.URL.Path, "/"))
	if !ok {
		fail(w, http.StatusNotFound)
		return
	}
	w.Header().Set("Content-Type", "text/plain")
	w.Header().Set(ttlHeader, strconv.Itoa(int(left.Seconds())))
	_, _ = w.Write([]byte(content))
}

// fail answers with a page of XHTML, as the service does.
func fail(w http.ResponseWriter, status int) {
	title := strconv.Itoa(status) + " - " + http.StatusText(status)
	w.Header().Set("Content-Type", "text/html")
	w.WriteHeader(status)
	fmt.Fprintf(w, `<?xml version="1.0" encoding="iso-8859-1"?>
<!DOCTYPE html PUBLIC "-//W3C//DTD XHTML 1.0 Transitional//EN"
	"http://www.w3.org/TR/xhtml1/DTD/xhtml1-transitional.dtd">
<html xmlns="http://www.w3.org/1999/xhtml" xml:lang="en" lang="en">
 <head>
  <title>%[1]s</title>
 </head>
 <body>
  <h1>%[1]s</h1>
 </body>
</html>
`, title)
}
