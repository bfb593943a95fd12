package main

import (
	"context"

	fwk "k8s.io/kube-scheduler/framework"
)

// playSequence schedules pods one after the other, each seeing those before it as running. Volumes
// and devices of those before are reserved, as they are until the binding is written.
func (p *place) playSequence(q *question) (*sequenceAnswer, error) {
	ctx := context.Background()
	played := &sequenceAnswer{Steps: []*answer{}}
	for _, one := range q.Sequence {
		result, state, err := p.judge(one.Pod, q)
		if err != nil {
			return nil, err
		}
		played.Steps = append(played.Steps, result)
		node := one.Node
		if node == "" && len(result.Best) > 0 {
			node = result.Best[0]
		}
		if node == "" {
			continue
		}
		assumed := one.Pod.DeepCopy()
		assumed.Spec.NodeName = node
		if _, err := p.lister.Get(node); err != nil {
			result.AssumeFailed = err.Error()
			continue
		}
		status := p.framework.RunReservePluginsReserve(ctx, state, assumed, node)
		release := func(state fwk.CycleState) func() {
			return func() { p.framework.RunReservePluginsUnreserve(ctx, state, assumed, node) }
		}(state)
		if !status.IsSuccess() {
			result.AssumeFailed = status.Message()
			release()
			continue
		}
		defer release() // the next case finds nothing reserved
		result.Assumed = node
		p.existing = append(p.existing, assumed)
		if err := p.shelves.put(assumed); err != nil {
			return nil, err
		}
	}
	return played, nil
}
