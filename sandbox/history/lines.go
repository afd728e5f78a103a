package history

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
)

// readLines reads the JSON objects of a file, one a line; none if there is no file.
func readLines[T any](path string) ([]T, error) {
	file, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading earlier results: %w", err)
	}
	defer file.Close()
	var all []T
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var one T
		if err := json.Unmarshal(lines.Bytes(), &one); err != nil {
			continue // the last line of a run that was killed
		}
		all = append(all, one)
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("reading earlier results: %w", err)
	}
	return all, nil
}

// appendLine adds an object to a file. Several goroutines may call it: it writes once.
func appendLine(path string, one any) error {
	text, err := json.Marshal(one)
	if err != nil {
		return fmt.Errorf("encoding a result: %w", err)
	}
	file, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return fmt.Errorf("writing a result: %w", err)
	}
	// The line before may be incomplete.
	_, err = file.Write(append([]byte("\n"), text...))
	if err := errors.Join(err, file.Close()); err != nil {
		return fmt.Errorf("writing a result: %w", err)
	}
	return nil
}
