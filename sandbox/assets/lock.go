package assets

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// lock takes the lock of one program's build, across processes. The kernel releases it when its
// holder ends.
func (b *builder) lock(ctx context.Context, name string) (unlock func(), err error) {
	f, err := os.OpenFile(filepath.Join(b.cache, name+".lock"), os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, fmt.Errorf("opening the lock: %w", err)
	}
	printed := false
	for {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			return func() { f.Close() }, nil
		}
		if !errors.Is(err, syscall.EWOULDBLOCK) && !errors.Is(err, syscall.EINTR) {
			f.Close()
			return nil, fmt.Errorf("taking the lock: %w", err)
		}
		if !printed {
			b.progress.println("waiting for another lifeboat that builds " + name)
			printed = true
		}
		select {
		case <-ctx.Done():
			f.Close()
			return nil, fmt.Errorf("waiting for another build: %w", ctx.Err())
		case <-time.After(200 * time.Millisecond):
		}
	}
}
