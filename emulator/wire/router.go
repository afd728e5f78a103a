package wire

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"runtime/debug"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/uuid"
)

// maxBody bounds request bodies. The largest that AWS accepts here is an SQS batch of 1 MiB, which
// percent-encoding triples.
const maxBody = 8 << 20

// Router finds the service and action of each request, calls it and encodes
// the answer.
type Router struct {
	scope    Scope
	log      *slog.Logger
	gate     *Gate
	services map[string]*registered
	order    []*registered
}

// registered is a service with the router's data about it.
type registered struct {
	Service

	paths *http.ServeMux
}

// NewRouter makes a router for the services of one scope. All calls pass the gate. It rejects
// tables with mistakes and duplicate names.
func NewRouter(scope Scope, log *slog.Logger, gate *Gate, services []Service) (*Router, error) {
	rt := &Router{scope: scope, log: log, gate: gate, services: map[string]*registered{}}
	for _, s := range services {
		if err := s.check(); err != nil {
			return nil, err
		}
		if rt.services[s.Name] != nil {
			return nil, fmt.Errorf("service %s: registered twice", s.Name)
		}
		reg := &registered{Service: s, paths: s.paths()}
		rt.services[s.Name] = reg
		rt.order = append(rt.order, reg)
	}
	return rt, nil
}

// ServeHTTP implements http.Handler.
func (rt *Router) ServeHTTP(w http.ResponseWriter, hr *http.Request) {
	// Only a browser sends it. A page could otherwise post forms to this machine.
	if hr.Header.Get("Origin") != "" {
		http.Error(w, "requests of web pages are refused: remove the header Origin", http.StatusForbidden)
		return
	}
	r := &Request{ID: string(uuid.NewUUID()), BaseURL: baseURL(hr), Path: hr.URL.Path, http: hr}
	service := &registered{Service: Service{Protocol: Query}}
	out, err := rt.call(w, r, &service)
	var a *answer
	if err == nil {
		a, err = encode(&service.Service, r, out)
	}
	if err != nil {
		e, known := asError(err)
		if !known && hr.Context().Err() == nil {
			rt.log.Error("answered InternalFailure", "service", r.Service, "action", r.Action, "err", err)
		}
		a = encodeError(&service.Service, r, e)
	}
	rt.log.Debug("answered", "service", r.Service, "action", r.Action, "status", a.status, "requestId", r.ID)
	w.Header().Set("Date", rt.scope.Clock.Now().UTC().Format(http.TimeFormat))
	a.write(w, r.ID)
}

// call reads the request and performs its action. It sets service as soon as it is known, so that
// errors have the service's shape. It converts a panic to an error, because the emulator must
// survive any request.
func (rt *Router) call(w http.ResponseWriter, r *Request, service **registered) (out any, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
		}
	}()
	cred, err := rt.read(w, r, service)
	if err != nil {
		return nil, err
	}
	action, err := rt.admit(r, *service, cred)
	if err != nil {
		return nil, err
	}
	return rt.gate.perform(&(*service).Service, r, action)
}

// read reads body and form, and finds protocol, service and action.
func (rt *Router) read(w http.ResponseWriter, r *Request, service **registered) (credential, error) {
	body, readErr := io.ReadAll(http.MaxBytesReader(w, r.http.Body, maxBody))
	form, formErr := readForm(r.http, body)
	cred := readCredential(r.http, form)
	prefix, target, _ := strings.Cut(r.http.Header.Get("X-Amz-Target"), ".")
	found := rt.find(cred.service, prefix, form.Get("Action"))
	r.Protocol = jsonProtocol(r.http)
	if found != nil {
		*service, r.Service = found, found.Name
		if r.Protocol == 0 && found.Protocol != JSON10 && found.Protocol != JSON11 {
			r.Protocol = found.Protocol
		}
	}
	if r.Protocol == 0 {
		r.Protocol = Query
	}
	r.AccessKey, r.Form, r.Body = cred.accessKey, form, body
	rt.findAction(r, *service, target)

	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(readErr, &tooLarge):
		return cred, &Error{Status: http.StatusRequestEntityTooLarge, Code: "RequestEntityTooLarge",
			Message: fmt.Sprintf("Request size exceeded %d bytes", tooLarge.Limit)}
	case readErr != nil:
		return cred, &Error{Code: "IncompleteBody", Message: "The request body ended early."}
	case formErr != nil:
		return cred, malformed(r.Protocol, formErr)
	}
	return cred, nil
}

// find selects the service by the credential's scope; otherwise by the target's prefix, or by the
// action.
func (rt *Router) find(signed, targetPrefix, action string) *registered {
	if signed != "" {
		return rt.services[signed]
	}
	for _, s := range rt.order {
		if targetPrefix != "" && s.TargetPrefix == targetPrefix {
			return s
		}
	}
	for _, s := range rt.order {
		if s.Actions[action] != nil {
			return s
		}
	}
	return nil
}

func (rt *Router) findAction(r *Request, s *registered, target string) {
	switch r.Protocol {
	case Query, EC2Query:
		r.Action = r.Form.Get("Action")
	case RESTJSON:
		found := &foundAction{}
		s.paths.ServeHTTP(found, r.http)
		if found.request != nil {
			r.Action, r.http = found.name, found.request
		}
	case JSON10, JSON11:
		r.Action = target
	}
}

// admit checks what AWS's front end checks before the service.
func (rt *Router) admit(r *Request, s *registered, cred credential) (Action, error) {
	switch {
	case !cred.present:
		return nil, missingToken(r.Protocol)
	case s.Name == "":
		return nil, &Error{Code: "UnknownOperationException", QueryCode: "InvalidAction", Namespace: Coral,
			Message: fmt.Sprintf("The service %q is not emulated here.", cred.service)}
	case cred.region != "" && cred.region != rt.scope.Region && !s.AnyRegion:
		return nil, wrongRegion(cred.region, rt.scope.Region)
	}
	if err := checkTime(r.Protocol, cred.signed, rt.scope.Clock.Now()); err != nil {
		return nil, err
	}
	if until := rt.gate.identify(cred.accessKey).Expires; !until.IsZero() && !time.Now().Before(until) {
		return nil, expired(r.Protocol)
	}
	switch {
	case (r.Protocol == Query || r.Protocol == EC2Query) && r.Action == "":
		return nil, &Error{Code: "MissingAction", Message: "The request must contain the parameter Action"}
	case s.Actions[r.Action] == nil:
		return nil, unknownAction(r.Protocol, r.Action)
	}
	return s.Actions[r.Action], nil
}
