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
	member, err := b.etcd(ctx, "status", struct{}{})
	if err != nil {
		return err
	}
	var status struct {
		Header struct {
			Member string `json:"member_id"`
		} `json:"header"`
	}
	if err := json.Unmarshal(member, &status); err != nil {
		return fmt.Errorf("reading the status of etcd: %w", err)
	}
	alarm := map[string]string{"memberID": status.Header.Member, "alarm": "NOSPACE", "action": "DEACTIVATE"}
	b.onUndo(func(ctx context.Context) error {
		_, err := b.etcd(ctx, "alarm", alarm)
		return err
	})
	_, err = b.etcd(ctx, "alarm", map[string]string{"memberID": status.Header.Member, "alarm": "NOSPACE", "action": "ACTIVATE"})
	return err
}

// etcd calls the gateway of etcd's maintenance API. etcd listens in the working directory of the control plane.
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
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://etcd/v3/maintenance/"+call, bytes.NewReader(text))
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
