// Promql reads a JSON list of expressions and says which of them Prometheus does not understand.
package main

import (
	"encoding/json"
	"fmt"
	"os"

	"github.com/prometheus/prometheus/promql/parser"
)

func main() {
	var expressions []string
	if err := json.NewDecoder(os.Stdin).Decode(&expressions); err != nil {
		panic(err)
	}
	for _, expression := range expressions {
		if _, err := parser.ParseExpr(expression); err != nil {
			fmt.Printf("%s\n  %v\n", expression, err)
			defer os.Exit(1)
		}
	}
	fmt.Printf("%d expressions\n", len(expressions))
}
