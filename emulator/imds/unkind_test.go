package imds_test

import (
	"context"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lifeboat-dev/lifeboat/emulator"
	"github.com/lifeboat-dev/lifeboat/emulator/ec2"
	"github.com/lifeboat-dev/lifeboat/emulator/imds"
)

// A notice appears after its event, and some requests fail. A repeated request passes.
func TestUnkindMetadata(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server, err := emulator.New(emulator.Options{})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		var work sync.WaitGroup
		work.Go(func() { server.Work(ctx) })
		defer work.Wait()
		defer cancel()
		made, err := server.States.EC2.Launch(ec2.LaunchInput{ImageID: "ami-0abc", Min: 1, Max: 1, Spot: &ec2.SpotOptions{}})
		if err != nil {
			t.Fatal(err)
		}
		id := made[0].ID
		server.States.IMDS.SetUnkind(imds.Unkind{Random: rand.New(rand.NewPCG(1, 2)), NoticeLag: 5 * time.Second, Failures: 0.3})
		failed := 0
		ask := func(method, path, header, value string) *httptest.ResponseRecorder {
			for {
				w, r := httptest.NewRecorder(), httptest.NewRequest(method, path, nil)
				r.Header.Set(header, value)
				server.States.IMDS.Handler(id).ServeHTTP(w, r)
				if w.Code != http.StatusServiceUnavailable {
					return w
				}
				failed++
			}
		}
		read := func() int {
			token := ask(http.MethodPut, "/latest/api/token", "X-Aws-Ec2-Metadata-Token-Ttl-Seconds", "60")
			return ask(http.MethodGet, "/latest/meta-data/spot/instance-action", "X-Aws-Ec2-Metadata-Token", token.Body.String()).Code
		}
		time.Sleep(time.Minute) // it runs
		if err := server.States.EC2.Interrupt([]string{id}, ec2.InterruptOptions{}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if got := read(); got != http.StatusNotFound {
			t.Errorf("at once: %d", got)
		}
		time.Sleep(5 * time.Second)
		for range 100 {
			if got := read(); got != http.StatusOK {
				t.Fatalf("later: %d", got)
			}
		}
		if failed < 30 || failed > 200 {
			t.Errorf("%d requests failed", failed)
		}
	})
}
