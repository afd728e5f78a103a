package sqs

import (
	"context"
	"encoding/base64"
	"net/url"
	"strings"

	"github.com/lifeboat-dev/lifeboat/emulator/wire"
)

// api turns requests into calls on the state.
type api struct {
	state    *State
	scope    wire.Scope
	identify func(accessKey string) wire.Identity
}

// queueRef is how requests name their queue.
type queueRef struct {
	QueueURL string `json:"QueueUrl"`
}

// url is a queue's URL, on the host that the caller used.
func (a *api) url(r *wire.Request, name string) string {
	return r.BaseURL + "/" + a.scope.Account + "/" + name
}

// queue is the name of the queue of a request. Query clients may omit QueueUrl and post to that URL instead.
func (a *api) queue(r *wire.Request, ref queueRef) (string, error) {
	path := r.Path
	if ref.QueueURL != "" {
		u, err := url.Parse(ref.QueueURL)
		if err != nil {
			return "", invalidAddress(ref.QueueURL)
		}
		path = u.Path
	}
	if strings.Trim(path, "/") == "" {
		return "", missingParameter("QueueUrl")
	}
	account, name, ok := strings.Cut(strings.Trim(path, "/"), "/")
	switch {
	case !ok:
		return "", invalidAddress(ref.QueueURL)
	case account != a.scope.Account:
		return "", noSuchQueue()
	}
	return name, nil
}

func invalidAddress(address string) *wire.Error {
	return wire.Errorf("InvalidAddress", "The address %s is not valid for this endpoint.", address)
}

type createQueueInput struct {
	QueueName  string
	Attributes map[string]string `query:"Attribute,Name,Value"`
	Tags       map[string]string `json:"tags" query:"Tag,Key,Value"`
}

type queueURLOutput struct {
	QueueURL string `json:"QueueUrl" xml:"QueueUrl"`
}

func (a *api) createQueue(_ context.Context, r *wire.Request, in *createQueueInput) (*queueURLOutput, error) {
	if in.QueueName == "" {
		return nil, missingParameter("QueueName")
	}
	if err := a.state.Create(in.QueueName, in.Attributes, in.Tags); err != nil {
		return nil, err
	}
	return &queueURLOutput{QueueURL: a.url(r, in.QueueName)}, nil
}

func (a *api) deleteQueue(_ context.Context, r *wire.Request, in *queueRef) (*wire.None, error) {
	name, err := a.queue(r, *in)
	if err != nil {
		return nil, err
	}
	return nil, a.state.Delete(name)
}

func (a *api) purgeQueue(_ context.Context, r *wire.Request, in *queueRef) (*wire.None, error) {
	name, err := a.queue(r, *in)
	if err != nil {
		return nil, err
	}
	return nil, a.state.Purge(name)
}

type getQueueURLInput struct {
	QueueName              string
	QueueOwnerAWSAccountID string `json:"QueueOwnerAWSAccountId"`
}

func (a *api) getQueueURL(_ context.Context, r *wire.Request, in *getQueueURLInput) (*queueURLOutput, error) {
	switch {
	case in.QueueName == "":
		return nil, missingParameter("QueueName")
	case in.QueueOwnerAWSAccountID != "" && in.QueueOwnerAWSAccountID != a.scope.Account:
		return nil, noSuchQueue()
	}
	if err := a.state.Exists(in.QueueName); err != nil {
		return nil, err
	}
	return &queueURLOutput{QueueURL: a.url(r, in.QueueName)}, nil
}

// page is the paging of queue lists. A token is the last name of the previous page.
type page struct {
	MaxResults *int
	NextToken  string
}

func (p page) read() (after string, limit int, err error) {
	limit = 1000
	if p.MaxResults != nil {
		limit = *p.MaxResults
	}
	if limit < 1 || limit > 1000 {
		return "", 0, badParameter("Value %d for parameter MaxResults is invalid. Reason: must be between 1 and 1000.", limit)
	}
	token, err := base64.StdEncoding.DecodeString(p.NextToken)
	if err != nil {
		return "", 0, badParameter("Invalid or expired next token.")
	}
	return string(token), limit, nil
}

// next is the token for the names after these. Without MaxResults there is none: the list is cut,
// as AWS does.
func (p page) next(names []string, more bool) string {
	if !more || p.MaxResults == nil {
		return ""
	}
	return base64.StdEncoding.EncodeToString([]byte(names[len(names)-1]))
}

type listQueuesInput struct {
	page

	QueueNamePrefix string
}

type listQueuesOutput struct {
	QueueURLs []string `json:"QueueUrls,omitempty" xml:"QueueUrl"`
	NextToken string   `json:",omitempty" xml:",omitempty"`
}

func (a *api) listQueues(_ context.Context, r *wire.Request, in *listQueuesInput) (*listQueuesOutput, error) {
	after, limit, err := in.read()
	if err != nil {
		return nil, err
	}
	names, more := a.state.List(in.QueueNamePrefix, after, limit)
	return &listQueuesOutput{QueueURLs: a.urls(r, names), NextToken: in.next(names, more)}, nil
}

type deadLetterSourcesInput struct {
	queueRef
	page
}

type deadLetterSourcesOutput struct {
	QueueURLs []string `json:"queueUrls" xml:"QueueUrl"`
	NextToken string   `json:",omitempty" xml:",omitempty"`
}

func (a *api) listDeadLetterSourceQueues(_ context.Context, r *wire.Request, in *deadLetterSourcesInput) (*deadLetterSourcesOutput, error) {
	name, err := a.queue(r, in.queueRef)
	if err != nil {
		return nil, err
	}
	after, limit, err := in.read()
	if err != nil {
		return nil, err
	}
	names, more, err := a.state.DeadLetterSources(name, after, limit)
	if err != nil {
		return nil, err
	}
	return &deadLetterSourcesOutput{QueueURLs: a.urls(r, names), NextToken: in.next(names, more)}, nil
}

func (a *api) urls(r *wire.Request, names []string) []string {
	urls := make([]string, 0, len(names))
	for _, name := range names {
		urls = append(urls, a.url(r, name))
	}
	return urls
}
