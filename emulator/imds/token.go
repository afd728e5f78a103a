package imds

import (
	"crypto/rand"
	"maps"
	"net/http"
	"strconv"
	"time"
)

// The headers of session tokens (EC2 User Guide, Use the Instance Metadata Service).
const (
	tokenHeader = "X-Aws-Ec2-Metadata-Token" //nolint:gosec // G101: the name of a header
	ttlHeader   = "X-Aws-Ec2-Metadata-Token-Ttl-Seconds"
	maxTTL      = 21600
)

// token is a session token: for one instance and a limited time.
type token struct {
	instanceID string
	expires    time.Time
}

// putToken answers a request for a token.
func (s *State) putToken(w http.ResponseWriter, r *http.Request, instanceID string) {
	o := s.setting(instanceID)
	if o.DropTokens {
		<-r.Context().Done()
		return
	}
	if r.Header.Get("X-Forwarded-For") != "" {
		// The request came through a proxy, and AWS gives no tokens to clients behind one.
		fail(w, http.StatusForbidden)
		return
	}
	ttl, err := strconv.Atoi(r.Header.Get(ttlHeader))
	if err != nil || ttl < 1 || ttl > maxTTL {
		fail(w, http.StatusBadRequest)
		return
	}
	age := time.Duration(ttl) * time.Second
	if o.MaxTokenAge > 0 {
		age = min(age, o.MaxTokenAge)
	}
	text := s.issue(instanceID, age)
	w.Header().Set("Content-Type", "text/plain")
	w.Header().Set(ttlHeader, strconv.Itoa(ttl))
	_, _ = w.Write([]byte(text))
}

func (s *State) issue(instanceID string, age time.Duration) string {
	text := rand.Text() + rand.Text() + "=="
	now := time.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	maps.DeleteFunc(s.tokens, func(_ string, t token) bool { return !now.Before(t.expires) })
	s.tokens[text] = token{instanceID, now.Add(age)}
	return text
}

// admits reports whether a request carries a valid token of the instance.
func (s *State) admits(r *http.Request, instanceID string) (left time.Duration, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t, known := s.tokens[r.Header.Get(tokenHeader)]
	left = time.Until(t.expires)
	return left, known && t.instanceID == instanceID && left > 0
}

// ExpireTokens ends all tokens of an instance now.
func (s *State) ExpireTokens(instanceID string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	maps.DeleteFunc(s.tokens, func(_ string, t token) bool { return t.instanceID == instanceID })
}
