package wire

// EmbeddingsPath is the path of OpenAI's embeddings protocol. Infinity uses InfinityPath instead, and lists its
// models at InfinityModelsPath.
const (
	EmbeddingsPath     = "/v1/embeddings"
	InfinityPath       = "/embeddings"
	InfinityModelsPath = "/models"
)

// Paths of vLLM's endpoints for pooling models.
const (
	PoolingPath = "/pooling"
	RerankPath  = "/v1/rerank"
)
