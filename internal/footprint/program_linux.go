package footprint

import (
	"bufio"
	"io"
	"os"
	"strconv"
	"strings"
	"syscall"
)

// dropProgram has the kernel unmap the pages of the program. It does nothing where
// they cannot be told apart.
func dropProgram() {
	name, err := os.Readlink("/proc/self/exe")
	if err != nil {
		return
	}
	file, err := os.Open("/proc/self/smaps")
	if err != nil {
		return
	}
	defer file.Close() // it was only read
	for _, m := range clean(file, name) {
		// An error leaves the pages where they are, which is no harm.
		_, _, _ = syscall.Syscall(syscall.SYS_MADVISE, m.start, m.end-m.start, syscall.MADV_DONTNEED)
	}
}

// mapping is a range of addresses.
type mapping struct{ start, end uintptr }

// clean returns the mappings of a file that hold nothing but what is in the file:
// they may not be written to, and no page of them has been (proc_pid_smaps(5):
// Anonymous), as a loader that relocates, or a debugger, would have done.
func clean(smaps io.Reader, name string) []mapping {
	var (
		found []mapping
		last  *mapping
	)
	for lines := bufio.NewScanner(smaps); lines.Scan(); {
		key, rest, _ := strings.Cut(lines.Text(), " ")
		switch {
		case key == "Anonymous:":
			if last != nil && strings.TrimSpace(rest) == "0 kB" {
				found = append(found, *last)
			}
			last = nil
		case !strings.HasSuffix(key, ":"): // START-END PERMISSIONS OFFSET DEVICE INODE NAME
			last = nil
			if fields := strings.Fields(rest); len(fields) > 4 && !strings.Contains(fields[0], "w") && strings.HasSuffix(rest, " "+name) {
				last = parse(key)
			}
		}
	}
	return found
}

// parse reads START-END, in hexadecimal; nil where it is something else.
func parse(addresses string) *mapping {
	from, to, _ := strings.Cut(addresses, "-")
	start, err := strconv.ParseUint(from, 16, 64)
	if err != nil {
		return nil
	}
	end, err := strconv.ParseUint(to, 16, 64)
	if err != nil || end < start {
		return nil
	}
	return &mapping{uintptr(start), uintptr(end)}
}
