package chaos

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
)

// full are faults of the disk. Only etcd has one: lifeboatd writes no files.
func full() []Fault {
	return []Fault{{
		Name: "full-etcd", Text: "etcd has reached its quota: the API server stores nothing, and reads and deletions go on",
		Lasts: true, Part: PartControlPlane, needs: needsProc, apply: filling,
	}}
}

func needsProc() error {
	if runtime.GOOS != "linux" {
		return errors.New("finding etcd's socket needs Linux")
	}
	return nil
}

// filling raises the alarm that etcd raises at its quota, and after which it refuses what takes space (etcd
// operations guide, "Space quota"). The alarm survives a restart. An operator frees space, and disarms it.
func filling(ctx context.Context, b *broken) error {
	status, err := b.etcdStatus(ctx)
	if err != nil {
		return err
	}
	alarm := map[string]string{"memberID": status.Header.Member, "alarm": "NOSPACE", "action": "DEACTIVATE"}
	b.onUndo(func(ctx context.Context) error {
		_, err := b.etcd(ctx, "maintenance/alarm", alarm)
		return err
	})
	_, err = b.etcd(ctx, "maintenance/alarm", map[string]string{"memberID": status.Header.Member, "alarm": "NOSPACE", "action": "ACTIVATE"})
	return err
}

// StoredBytes returns the size of etcd's file after maintenance, which drops old revisions and gives free
// space back (etcd operations guide, "Maintenance"). etcd does not answer for a moment.
func (t *Target) StoredBytes(ctx context.Context) (int64, error) {
	before, err := t.etcdStatus(ctx)
	if err != nil {
		return 0, err
	}
	// "physical" waits until the revisions are gone.
	if _, err := t.etcd(ctx, "kv/compaction", map[string]any{"revision": before.Header.Revision, "physical": true}); err != nil {
		return 0, fmt.Errorf("compacting: %w", err)
	}
	if _, err := t.etcd(ctx, "maintenance/defragment", struct{}{}); err != nil {
		return 0, fmt.Errorf("defragmenting: %w", err)
	}
	after, err := t.etcdStatus(ctx)
	return after.Size, err
}

// etcdStatus is the part of etcd's status that is used here.
type etcdStatus struct {
	Header struct {
		Member   string `json:"member_id"`
		Revision string `json:"revision"`
	} `json:"header"`
	Size int64 `json:"dbSize,string"` // of the file, in bytes
}

func (t *Target) etcdStatus(ctx context.Context) (status etcdStatus, err error) {
	text, err := t.etcd(ctx, "maintenance/status", struct{}{})
	if err != nil {
		return status, err
	}
	if err := json.Unmarshal(text, &status); err != nil {
		return status, fmt.Errorf("reading the status of etcd: %w", err)
	}
	return status, nil
}

// etcd calls the gateway of etcd's API. etcd listens in the working directory of the control plane.
func (t *Target) etcd(ctx context.Context, call string, body any) ([]byte, error) {
	parts, err := t.parts(PartControlPlane)
	if err == nil && len(parts) == 0 {
		err = ErrNoPart
	}
	if err != nil {
		return nil, err
	}
	if _, err := t.own(parts[0].PID); err != nil {
		return nil, fmt.Errorf("the control plane: %w", err)
	}
	socket := fmt.Sprintf("/proc/%d/cwd/etcd:0", parts[0].PID)
	transport := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", socket)
	}}
	defer transport.CloseIdleConnections()
	text, err := json.Marshal(body)
	if err != nil {
		return nil, fmt.Errorf("encoding a request to etcd: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://etcd/v3/"+call, bytes.NewReader(text))
	if err != nil {
		return nil, fmt.Errorf("making a request to etcd: %w", err)
	}
	resp, err := transport.RoundTrip(req)
	if err != nil {
		return nil, fmt.Errorf("calling etcd: %w", err)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", resp.Status, answer)
	}
	if err != nil {
		return nil, fmt.Errorf("calling etcd: %w", err)
	}
	return answer, nil
}
