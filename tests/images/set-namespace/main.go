// Set-namespace is a function as most of the catalog's are: written in Go on kyaml. It puts every
// item into the namespace that its configuration names.
package main

import (
	"fmt"
	"os"

	"sigs.k8s.io/kustomize/kyaml/fn/framework"
	"sigs.k8s.io/kustomize/kyaml/kio"
	"sigs.k8s.io/kustomize/kyaml/yaml"
)

func setNamespace(list *framework.ResourceList) error {
	if list.FunctionConfig == nil {
		return fmt.Errorf("functionConfig is missing")
	}
	namespace := list.FunctionConfig.GetDataMap()["namespace"]
	if namespace == "" {
		list.Results = append(list.Results, &framework.Result{
			Severity: framework.Error,
			Message:  "data.namespace must be set",
		})
		return list.Results
	}
	for _, item := range list.Items {
		if err := item.PipeE(yaml.SetK8sNamespace(namespace)); err != nil {
			return err
		}
	}
	fmt.Fprintf(os.Stderr, "set-namespace: %d items\n", len(list.Items))
	return nil
}

func main() {
	stream := &kio.ByteReadWriter{
		Reader:                os.Stdin,
		Writer:                os.Stdout,
		KeepReaderAnnotations: true,
		PreserveSeqIndent:     true,
	}
	if err := framework.Execute(framework.ResourceListProcessorFunc(setNamespace), stream); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
