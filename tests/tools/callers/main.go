// Callers evaluates a function over and over, as Porch would: with Go's gRPC client as it is, over
// connections that live long, and with no retries of its own.
//
//	callers -address HOST:PORT -image IMAGE [-callers N] [-count N]
//
// It ends after -count evaluations of each caller or, without it, at the end of its standard input.
// It prints "warm" once every caller was answered, and at last how many evaluations there were and
// what each failure was. It exits with 1 if any failed.
package main

import (
	"context"
	"encoding/binary"
	"flag"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
)

const (
	method  = "/evaluator.FunctionEvaluator/EvaluateFunction"
	timeout = 60 * time.Second
	list    = "apiVersion: config.kubernetes.io/v1\nkind: ResourceList\nitems: []\n"
)

// Raw passes messages through as they are: two fields need no generated code.
type raw struct{}

func (raw) Name() string { return "proto" }

func (raw) Marshal(message any) ([]byte, error) { return *message.(*[]byte), nil }

func (raw) Unmarshal(data []byte, message any) error {
	*message.(*[]byte) = append([]byte(nil), data...)
	return nil
}

func field(message []byte, number byte, value string) []byte {
	message = append(message, number<<3|2)
	message = binary.AppendUvarint(message, uint64(len(value)))
	return append(message, value...)
}

func main() {
	address := flag.String("address", "localhost:9445", "the runner")
	image := flag.String("image", "", "the function")
	callers := flag.Int("callers", 1, "how many at once, each with a connection")
	count := flag.Int("count", 0, "evaluations of each")
	flag.Parse()
	request := field(field(nil, 1, list), 2, *image)

	ctx, stop := context.WithCancel(context.Background())
	if *count == 0 {
		go func() {
			_, _ = io.Copy(io.Discard, os.Stdin)
			stop()
		}()
	}
	var (
		mutex    sync.Mutex
		answered int
		failures []string
		first    sync.WaitGroup
		all      sync.WaitGroup
	)
	first.Add(*callers)
	all.Add(*callers)
	for range *callers {
		go func() {
			defer all.Done()
			// The name is resolved by the system, as for Porch.
			connection, err := grpc.NewClient("dns:///"+*address,
				grpc.WithTransportCredentials(insecure.NewCredentials()),
				grpc.WithDefaultCallOptions(grpc.ForceCodec(raw{})))
			if err != nil {
				panic(err)
			}
			defer connection.Close()
			for done := 0; (*count == 0 || done < *count) && ctx.Err() == nil; done++ {
				var response []byte
				// A call that has begun is finished, whatever ends the callers.
				call, cancel := context.WithTimeout(context.Background(), timeout)
				err := connection.Invoke(call, method, &request, &response)
				cancel()
				mutex.Lock()
				if err != nil {
					failures = append(failures, err.Error())
				} else {
					answered++
				}
				mutex.Unlock()
				if done == 0 {
					first.Done()
				}
			}
		}()
	}
	first.Wait()
	fmt.Println("warm")
	all.Wait()
	fmt.Printf("%d answered, %d failed\n", answered, len(failures))
	for _, failure := range failures {
		fmt.Println(failure)
	}
	if len(failures) > 0 {
		os.Exit(1)
	}
}
