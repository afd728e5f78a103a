//go:build e2e

package console

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"github.com/lifeboat-dev/lifeboat/internal/testkit/need"
)

// waitTime limits each wait for the page. On a quiet machine it takes a moment.
const waitTime = time.Minute

// browser is a page of a real browser.
type browser struct {
	t   *testing.T
	ctx context.Context
}

// open opens the console. Errors of the page and violations of its policy fail the test.
func (r *rig) open(t *testing.T, width, height int64) *browser {
	t.Helper()
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(need.Program(t, "chromium")), chromedp.NoSandbox, chromedp.DisableGPU)
	ctx, stop := chromedp.NewExecAllocator(t.Context(), options...)
	t.Cleanup(stop)
	ctx, stop = chromedp.NewContext(ctx)
	t.Cleanup(stop)
	b := &browser{t: t, ctx: ctx}
	var mu sync.Mutex
	var problems []string
	chromedp.ListenTarget(ctx, func(event any) {
		mu.Lock()
		defer mu.Unlock()
		switch e := event.(type) {
		case *runtime.EventExceptionThrown:
			problems = append(problems, e.ExceptionDetails.Error())
		case *log.EventEntryAdded:
			if e.Entry.Level == log.LevelError && !strings.Contains(e.Entry.URL, "/api/plan") { // the page shows why no plan can be made
				problems = append(problems, fmt.Sprintf("%s %s", e.Entry.Text, e.Entry.URL))
			}
		}
	})
	b.run(chromedp.EmulateViewport(width, height), chromedp.Navigate(r.url))
	t.Cleanup(func() {
		mu.Lock()
		defer mu.Unlock()
		for _, p := range problems {
			t.Error("the page reports", p)
		}
	})
	return b
}

func (b *browser) run(actions ...chromedp.Action) {
	b.t.Helper()
	ctx, stop := context.WithTimeout(b.ctx, waitTime)
	defer stop()
	if b.ctx == ctx || chromedp.FromContext(b.ctx).Target == nil {
		ctx = b.ctx // the browser lives as long as the context of its first action
	}
	if err := chromedp.Run(ctx, actions...); err != nil {
		b.t.Fatal(err, b.text())
	}
}

// text returns the text of the page, for a failed test.
func (b *browser) text() string {
	var text string
	_ = chromedp.Run(b.ctx, chromedp.Evaluate(`document.body.innerText`, &text))
	return text
}

// until waits until an expression is true.
func (b *browser) until(expression string) {
	b.t.Helper()
	b.run(chromedp.Poll("Boolean("+expression+")", nil, chromedp.WithPollingInterval(50*time.Millisecond), chromedp.WithPollingTimeout(waitTime)))
}

// shows waits until the page has a text.
func (b *browser) shows(text string) {
	b.t.Helper()
	b.until(fmt.Sprintf("document.body.innerText.includes(%q)", text))
}

// visit goes to another page of the console.
func (b *browser) visit(hash string) {
	b.t.Helper()
	b.run(chromedp.Evaluate(fmt.Sprintf("location.hash = %q", hash), nil))
}

// value returns the value of an expression.
func value[T any](b *browser, expression string) T {
	b.t.Helper()
	var v T
	b.run(chromedp.Evaluate(expression, &v, func(p *runtime.EvaluateParams) *runtime.EvaluateParams { return p.WithAwaitPromise(true) }))
	return v
}
