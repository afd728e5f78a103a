// Command workload runs on the sandbox's real instances. It is a server that records
// when it is stopped, a load on that server, and the process that holds a pod's
// namespaces. It is one static program that uses only the standard library, so that
// the binary is the whole image.
//
//	workload server  --answer-time 20ms --at-sigterm exit --ready-after 5s
//	workload prestop --sleep 10s
//	workload load    --url http://10.96.0.7 --workers 8 --summary /shared/load.json
//	workload pause
//
// Every flag of server and prestop can also be an environment variable:
// WORKLOAD_ANSWER_TIME for --answer-time. A container's preStop hook has the
// container's environment, so both write to the same journal.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
)

func main() {
	if err := run(os.Args[1:], os.Stdout); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return
		}
		fmt.Fprintln(os.Stderr, "workload:", err)
		os.Exit(1)
	}
}

func run(args []string, out io.Writer) error {
	if len(args) == 0 {
		return errors.New("no command: use server, prestop, load or pause")
	}
	// Handle the signal from the start: without a handler, the first process of a
	// container ignores it.
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	switch args[0] {
	case "server":
		o, err := serverFlags(args[1:])
		if err != nil {
			return err
		}
		return serve(ctx, o, out)
	case "prestop":
		o, err := preStopFlags(args[1:])
		if err != nil {
			return err
		}
		return preStop(ctx, o)
	case "load":
		o, err := loadFlags(args[1:])
		if err != nil {
			return err
		}
		return load(ctx, o, out)
	case "pause":
		pause(ctx)
		return nil
	default:
		return fmt.Errorf("unknown command %q: use server, prestop, load or pause", args[0])
	}
}

// parse parses flags. The environment provides flags that are not given.
func parse(fs *flag.FlagSet, args []string) error {
	if err := fs.Parse(args); err != nil {
		return err
	}
	if fs.NArg() > 0 {
		return fmt.Errorf("%s: unknown argument %q", fs.Name(), fs.Arg(0))
	}
	given := map[string]bool{}
	fs.Visit(func(f *flag.Flag) { given[f.Name] = true })
	var err error
	fs.VisitAll(func(f *flag.Flag) {
		name := "WORKLOAD_" + strings.ToUpper(strings.ReplaceAll(f.Name, "-", "_"))
		if text, ok := os.LookupEnv(name); ok && !given[f.Name] && err == nil {
			if bad := fs.Set(f.Name, text); bad != nil {
				err = fmt.Errorf("%s is %q: %w", name, text, bad)
			}
		}
	})
	return err
}
