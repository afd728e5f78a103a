package cli

import (
	"bufio"
	"context"
	"fmt"
	"strings"
)

// ask prints a question and returns the line that the person types, with its
// line end. A read from a terminal cannot be cancelled, so a goroutine does it.
// If ctx ends first, as on Ctrl-C, ask returns and abandons that goroutine.
func (s *session) ask(ctx context.Context, keyboard *bufio.Reader, question string) (string, error) {
	s.err.Printf("%s", question)
	type line struct {
		text string
		err  error
	}
	typed := make(chan line, 1)
	go func() {
		text, err := keyboard.ReadString('\n')
		typed <- line{text, err}
	}()
	select {
	case <-ctx.Done():
		s.err.Printf("\n")
		return "", ctx.Err()
	case l := <-typed:
		if l.err != nil && l.text == "" {
			return "", fmt.Errorf("reading the answer: %w", l.err)
		}
		return l.text, nil
	}
}

// requireConfirmation asks a yes-or-no question and returns an error unless the answer is yes.
// Without a terminal it cannot ask, so it returns a usage error that asks for
// --yes.
func (s *session) requireConfirmation(ctx context.Context, keyboard *bufio.Reader, what, prefix string) error {
	if !s.interactive {
		return usageErrorf("%sstandard input is not a terminal, so the command cannot ask for confirmation: add --yes to confirm. %s", prefix, what)
	}
	answer, err := s.ask(ctx, keyboard, what+"\nContinue? [y/N] ")
	if err != nil {
		return err
	}
	switch strings.ToLower(strings.TrimSpace(answer)) {
	case "y", "yes":
		return nil
	}
	return fmt.Errorf("not confirmed, so nothing was changed")
}
