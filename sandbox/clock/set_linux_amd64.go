package clock

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

const (
	// jumpSize is the size of a near jump, which replaces the beginning of clock_gettime.
	jumpSize = 5
	jump     = 0xe9
	// stopLimit is how long all threads may take to stop, and tries is how often they may be at a wrong place.
	stopLimit = 5 * time.Second
	stopPoll  = time.Millisecond
	tries     = 100
)

// Supported returns why this machine cannot change the clock of one process; nil: it can. It looks at the vDSO
// of this process, which is the same in all.
func Supported() error {
	v, err := open(&os.Process{Pid: os.Getpid()})
	if err != nil {
		return err
	}
	return v.mem.Close()
}

// Set makes the clock of a process wrong. A later call replaces an earlier one. The error is os.ErrProcessDone if
// the process has ended.
func Set(process *os.Process, e Error) error {
	v, err := open(process)
	if err != nil {
		return err
	}
	defer v.mem.Close()
	// The process never runs between the two writes: the numbers of an earlier call stay whole.
	return v.stopped(func() error {
		if err := v.write(v.free+untilAt, e.numbers()); err != nil {
			return err
		}
		if v.patched() {
			return nil
		}
		if err := v.write(v.free, code); err != nil {
			return err
		}
		to := make([]byte, jumpSize)
		to[0] = jump
		binary.LittleEndian.PutUint32(to[1:], uint32(v.free-v.entry-jumpSize))
		return v.write(v.entry, to)
	})
}

// Clear makes the clock of a process right. The function stays in the vDSO, without an effect: a thread can
// be in it.
func Clear(process *os.Process) error {
	err := Set(process, Error{From: time.Unix(0, 0), Until: time.Unix(0, 0)})
	if errors.Is(err, os.ErrProcessDone) {
		return nil
	}
	return err
}

// vdso is the vDSO of a process.
type vdso struct {
	process *os.Process
	mem     *os.File
	image   []byte
	// start is its address; entry is the offset of clock_gettime, and free of unused bytes.
	start, entry, free int64
}

// open finds the vDSO of a process.
func open(process *os.Process) (*vdso, error) {
	pid := process.Pid
	start, end, err := mapping(pid)
	if err != nil {
		return nil, err
	}
	mem, err := os.OpenFile(fmt.Sprintf("/proc/%d/mem", pid), os.O_RDWR, 0)
	if err != nil {
		return nil, fmt.Errorf("opening the memory of process %d: %w: run this as root", pid, ended(err))
	}
	v := &vdso{process: process, mem: mem, image: make([]byte, end-start), start: start}
	if _, err := mem.ReadAt(v.image, start); err != nil {
		return nil, errors.Join(fmt.Errorf("reading the vDSO of process %d: %w", pid, ended(err)), mem.Close())
	}
	if err := v.find(); err != nil {
		return nil, errors.Join(fmt.Errorf("reading the vDSO of process %d: %w", pid, err), mem.Close())
	}
	return v, nil
}

// mapping is the address range of the vDSO.
func mapping(pid int) (start, end int64, err error) {
	maps, err := os.ReadFile(fmt.Sprintf("/proc/%d/maps", pid))
	if err != nil {
		return 0, 0, fmt.Errorf("reading the memory map of process %d: %w", pid, ended(err))
	}
	for line := range strings.Lines(string(maps)) {
		if !strings.HasSuffix(strings.TrimSpace(line), "[vdso]") {
			continue
		}
		_, err := fmt.Sscanf(line, "%x-%x", &start, &end)
		if err != nil {
			err = fmt.Errorf("reading the memory map of process %d: %w", pid, err)
		}
		return start, end, err
	}
	return 0, 0, fmt.Errorf("process %d has no vDSO: %w", pid, os.ErrProcessDone) // the map of a zombie is empty
}

// ended replaces the errors of a process that does not exist.
func ended(err error) error {
	// Its memory reads as empty, and takes no byte (mem_rw in the kernel's fs/proc/base.c).
	empty := errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
	if empty || errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ESRCH) {
		return os.ErrProcessDone
	}
	return err
}

// find finds clock_gettime, and zeros behind everything else.
func (v *vdso) find() error {
	file, err := elf.NewFile(bytes.NewReader(v.image))
	if err != nil {
		return fmt.Errorf("decoding it: %w", err)
	}
	symbols, err := file.DynamicSymbols()
	if err != nil {
		return fmt.Errorf("listing its functions: %w", err)
	}
	for _, s := range symbols {
		if s.Name == "__vdso_clock_gettime" && s.Size >= jumpSize {
			v.entry = int64(s.Value)
		}
	}
	v.free = int64(len(v.image)-size) &^ 15
	used := bytes.Trim(v.image[v.free:], "\x00")
	if v.entry == 0 || v.entry >= v.free || len(used) > 0 && !bytes.HasPrefix(v.image[v.free:], code) {
		return errors.New("it has no clock_gettime, or no free bytes: this kernel is not supported")
	}
	return nil
}

// patched reports whether clock_gettime jumps to the code already.
func (v *vdso) patched() bool { return v.image[v.entry] == jump }

func (v *vdso) write(at int64, what []byte) error {
	if _, err := v.mem.WriteAt(what, v.start+at); err != nil {
		return fmt.Errorf("writing to the vDSO of process %d: %w", v.process.Pid, ended(err))
	}
	return nil
}

// stopped calls f while no thread runs, and none is about to execute what the jump replaces.
func (v *vdso) stopped(f func() error) error {
	for range tries {
		if done, err := v.tryStopped(f); done || err != nil {
			return err
		}
	}
	return fmt.Errorf("process %d is always in clock_gettime", v.process.Pid)
}

func (v *vdso) tryStopped(f func() error) (done bool, err error) {
	was, err := v.states("T")
	if err != nil {
		return false, err
	}
	// The signal reaches only the process of the handle. So the memory that was opened before is its memory.
	if err := v.process.Signal(syscall.SIGSTOP); err != nil {
		return false, fmt.Errorf("stopping process %d: %w", v.process.Pid, err)
	}
	if !was { // otherwise another fault has stopped it, and continues it
		defer func() { _ = v.process.Signal(syscall.SIGCONT) }() // it may have ended
	}
	for limit := time.Now().Add(stopLimit); ; time.Sleep(stopPoll) {
		all, err := v.states("TtZX")
		if err != nil {
			return false, err
		}
		if all {
			break
		}
		if time.Now().After(limit) {
			return false, fmt.Errorf("process %d does not stop", v.process.Pid)
		}
	}
	within, err := v.anyWithin()
	if err != nil || within {
		return false, err
	}
	return true, f()
}

// eachThread reads a file of each thread.
func (v *vdso) eachThread(name string, f func(text string)) error {
	threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/%s", v.process.Pid, name))
	if err == nil && len(threads) == 0 {
		err = os.ErrProcessDone
	}
	if err != nil {
		return fmt.Errorf("listing the threads of process %d: %w", v.process.Pid, err)
	}
	for _, path := range threads {
		text, err := os.ReadFile(path)
		if errors.Is(ended(err), os.ErrProcessDone) {
			continue // the thread
		}
		if err != nil {
			return fmt.Errorf("reading the threads of process %d: %w", v.process.Pid, err)
		}
		f(string(text))
	}
	return nil
}

// states reports whether all threads have one of some states (proc_pid_stat(5)).
func (v *vdso) states(of string) (all bool, err error) {
	all = true
	err = v.eachThread("stat", func(text string) {
		if _, rest, ok := strings.Cut(text[strings.LastIndex(text, ")")+1:], " "); !ok || !strings.Contains(of, rest[:1]) {
			all = false
		}
	})
	return all, err
}

// anyWithin reports whether a stopped thread continues within the bytes that the jump replaces: at one of them,
// but not at the first. The last field of syscall is its program counter (proc_pid_syscall(5)).
func (v *vdso) anyWithin() (within bool, err error) {
	entry := v.start + v.entry
	err = v.eachThread("syscall", func(text string) {
		fields := strings.Fields(text)
		if len(fields) == 0 {
			return
		}
		at, err := strconv.ParseUint(strings.TrimPrefix(fields[len(fields)-1], "0x"), 16, 64)
		within = within || err == nil && int64(at) > entry && int64(at) < entry+jumpSize
	})
	return within, err
}
