package wire

// EmbeddingsPath is where requests go, and InfinityPath where they go at Infinity, which
// lists its models at InfinityModelsPath.
const (
	EmbeddingsPath     = "/v1/embeddings"
	InfinityPath       = "/embeddings"
	InfinityModelsPath = "/models"
)

// The paths of vLLM's endpoints for models that read and do not write.
const (
	PoolingPath = "/pooling"
	RerankPath  = "/v1/rerank"
)
