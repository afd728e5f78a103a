package emulator_test

import (
	"context"
	"fmt"

	"github.com/lifeboat-dev/lifeboat/emulator"
)

func Example() {
	server, err := emulator.New(emulator.Options{Region: "eu-west-1"})
	if err != nil {
		panic(err)
	}
	listener, err := server.Listen("127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- server.Serve(ctx, listener) }()
	fmt.Println(server.Account(), server.Region())
	stop()
	fmt.Println(<-served)
	// Output:
	// 123456789012 eu-west-1
	// <nil>
}
