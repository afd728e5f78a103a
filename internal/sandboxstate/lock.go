package sandboxstate

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// ErrRunning says that a sandbox of that name runs already.
var ErrRunning = errors.New("it is running already")

// Files of a sandbox's directory that outlast a clearing.
const (
	lockFile = "lock"
	// LogFile is the supervisor's log.
	LogFile = "supervisor.log"
)

// Lock is held for as long as a sandbox lives. The kernel lets go of it when its
// holder dies, so whether it is held says whether the sandbox is alive.
type Lock struct {
	dir  string
	file *os.File
}

// TakeLock makes dir and takes its lock. The error is ErrRunning if another
// holds it.
func TakeLock(ctx context.Context, dir string) (*Lock, error) {
	// A reader of the lock holds it for a moment too.
	patience := time.After(500 * time.Millisecond)
	for {
		l, err := tryLock(dir, syscall.LOCK_EX)
		if err == nil || !errors.Is(err, ErrRunning) {
			return l, err
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-patience:
			return nil, err
		case <-time.After(20 * time.Millisecond):
		}
	}
}

func tryLock(dir string, how int) (*Lock, error) {
	err := os.MkdirAll(dir, 0o700)
	if errors.Is(err, fs.ErrExist) || errors.Is(err, fs.ErrNotExist) {
		return nil, ErrRunning // another that is going has removed a parent in between
	}
	if err != nil {
		return nil, fmt.Errorf("making the sandbox's directory: %w", err)
	}
	path := filepath.Join(dir, lockFile)
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, ErrRunning // removed this very moment by one that is going
	}
	if err != nil {
		return nil, fmt.Errorf("opening the sandbox's lock: %w", err)
	}
	if err := syscall.Flock(int(f.Fd()), how|syscall.LOCK_NB); err != nil {
		f.Close()
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, ErrRunning
		}
		return nil, fmt.Errorf("locking %s: %w", path, err)
	}
	// It may have been removed between opening and locking.
	if mine, err := f.Stat(); err == nil {
		if there, err := os.Stat(path); err == nil && os.SameFile(mine, there) {
			return &Lock{dir: dir, file: f}, nil
		}
	}
	f.Close()
	return nil, ErrRunning
}

// Clear removes what an earlier sandbox has left in the directory.
func (l *Lock) Clear() error {
	entries, err := os.ReadDir(l.dir)
	if err != nil {
		return fmt.Errorf("clearing the sandbox's directory: %w", err)
	}
	for _, e := range entries {
		if e.Name() == lockFile || e.Name() == LogFile {
			continue
		}
		if err := os.RemoveAll(filepath.Join(l.dir, e.Name())); err != nil {
			return fmt.Errorf("clearing the sandbox's directory: %w", err)
		}
	}
	return nil
}

// Remove removes the directory with everything in it, and lets go.
func (l *Lock) Remove() error {
	defer l.file.Close()
	if err := os.RemoveAll(l.dir); err != nil {
		return fmt.Errorf("removing the sandbox's directory: %w", err)
	}
	if base, err := baseDir(); err == nil && filepath.Dir(l.dir) == base {
		// Nothing is left behind. This fails, and should, where others live there.
		_ = os.Remove(base)
		_ = os.Remove(filepath.Dir(base))
	}
	return nil
}

func (l *Lock) release() { l.file.Close() }

// Held reports whether a process holds the lock of dir.
func Held(dir string) (bool, error) {
	if _, err := os.Stat(filepath.Join(dir, lockFile)); errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	l, err := tryLock(dir, syscall.LOCK_SH)
	switch {
	case errors.Is(err, ErrRunning):
		return true, nil
	case err != nil:
		return false, err
	}
	l.release()
	return false, nil
}
