"""What the engine says of requests, the machine, the memory plan, and of faults.

English -> Chinese, {name} is a hole for a value.
"""

from __future__ import annotations

ENGINE = {
    # requests
    "There is no message to answer.": "没有可回答的消息。",
    "The last message is empty.": "最后一条消息是空的。",
    "A message has the role {role}; there are {roles}.": "某条消息的角色为 {role}；可用的有：{roles}。",
    "This conversation has {count} characters; at most {most} are taken. Shorten it or start a new chat.": (
        "此对话有 {count} 个字符，最多 {most} 个。请缩短，或新建对话。"
    ),
    "This conversation has more than {count} tokens; {limit} fit, the answer included. Shorten it or "
    "start a new chat.": "此对话超过 {count} 个 token，连同回答最多容纳 {limit} 个。请缩短，或新建对话。",
    "This conversation has {count} tokens; {limit} fit, the answer included. Shorten it or start a new "
    "chat.": "此对话有 {count} 个 token，连同回答最多容纳 {limit} 个。请缩短，或新建对话。",
    "The prompt has {prompt} tokens and its answer needs {answer}, together {all}; at most {most} fit. "
    "Shorten the conversation, or ask for a shorter answer.": (
        "提示有 {prompt} 个 token，回答需要 {answer} 个，共 {all} 个，最多容纳 {most} 个。请缩短对话，"
        "或要求较短的回答。"
    ),
    "The prompt is empty; at least one token is needed.": "提示是空的，至少需要一个 token。",
    "Only a reply that was begun can go on.": "只有已开始的回答可以继续。",
    "seed is {value}; it must fit 64 bits.": "seed 的值为 {value}，应在 64 位以内。",
    "There are {count} stop strings; at most {most} are taken.": "有 {count} 个停止字符串，最多 {most} 个。",
    "A stop string has {count} characters; it must have 1 to {most}.": (
        "有一个停止字符串有 {count} 个字符，应为 1 到 {most} 个。"
    ),
    # the machine
    "The model brings no chat template, so it is asked in ChatML's form; "
    "one that was not trained to chat goes on with a text rather than answers.": (
        "此模型没有对话模板，因此按 ChatML 的格式提问；未经对话训练的模型会续写文本，而不是回答。"
    ),
    "Models run on the processor.{more}": "模型在处理器上运行。{more}",
    "Models run on {card} ({kind}).": "模型在 {card}（{kind}）上运行。",
    " Its memory is the system's.{more}": "它使用系统内存。{more}",
    " Its memory is limited by the container it runs in.": "内存受所在容器的限制。",
    "{card} is not used: Octavo has no kernels for {kind} yet.": (
        "未使用 {card}：Octavo 还没有用于 {kind} 的计算内核。"
    ),
    "{card} is not used: {why}.": "未使用 {card}：{why}。",
    "its check did not end within {time} s": "检查在 {time} 秒内没有结束",
    "its check could not be started: {why}": "检查未能启动：{why}",
    "its check broke off ({why})": "检查中断（{why}）",
    "exit code {code}": "退出码 {code}",
    "{card} is not used: nothing is compiled for its architecture ({had}).": (
        "未使用 {card}：没有为它的架构（{had}）编译的内核。"
    ),
    "Triton on matrix units": "Triton（矩阵单元）",
    # the memory plan
    "A block holds {count} tokens, the best size for this backend.": (
        "每块存放 {count} 个 token，这是当前后端的最佳大小。"
    ),
    "A block holds {count} tokens, as set.": "每块存放 {count} 个 token（按设置）。",
    "A chat can be {count} tokens long, as set.": "一个对话最长 {count} 个 token（按设置）。",
    "A chat can be {count} tokens long, all that the model was made for.": (
        "一个对话最长 {count} 个 token，这是模型的上限。"
    ),
    "A chat can be {count} tokens long, as the pool allows; the model, {longest}.": (
        "一个对话最长 {count} 个 token，受内存池限制；模型本身可达 {longest} 个。"
    ),
    "The pool takes {size}, room for {count} chats of {length} tokens{why}": (
        "内存池占用 {size}，可容纳 {count} 个 {length} token 的对话{why}"
    ),
    ", as many as wanted.": "，已满足需要。",
    ": {why}": "：{why}",
    "as set.": "按设置。",
    "{part} of the free memory, less weights and buffers.": "取空闲内存的 {part}，减去权重和缓冲区。",
    "of {free} free, {left} stay free for other programs.": "空闲的 {free} 中，{left} 留给其他程序。",
    "that is half of the {rest} free beside the weights.": "即权重之外空闲的 {rest} 的一半。",
    "kv_pool_bytes asks for {wanted}; {free} are free beside the weights. Set it lower, or close other "
    "programs.": "kv_pool_bytes 要求 {wanted}，而权重之外只剩 {free}。请调低，或关闭其他程序。",
    "kv_pool_bytes is set to {size}, and {name} needs {one} for one chat of {length} tokens. Set it higher, "
    "or leave it out.": (
        "kv_pool_bytes 设为 {size}，而 {name} 的一个 {length} token 的对话需要 {one}。请调高，或不设置。"
    ),
    "{name} needs {weights} for its weights and {one} for one chat of {length} tokens, together {all}; "
    "{free} can be used now. {advice}.": (
        "{name} 的权重需要 {weights}，一个 {length} token 的对话需要 {one}，共 {all}；目前可用 {free}。"
        "{advice}。"
    ),
    "choose a smaller model{more}": "请选择较小的模型{more}",
    " or a shorter context": "或较短的上下文",
    "close other programs, or {advice}": "请关闭其他程序，或{advice}",
    "A step needs over {size} more than planned each time it is tried. Set context_length or "
    "max_step_tokens lower, or close other programs that use the card.": (
        "每次尝试时，一步计算都比计划多用 {size} 以上。请调低 context_length 或 max_step_tokens，"
        "或关闭占用显卡的其他程序。"
    ),
    "{name} is quantized already, so it can't be made {precision}; choose auto or none.": (
        "{name} 已量化，不能再转为 {precision}；请选择 auto 或 none。"
    ),
    "The weights are made {precision} when they are loaded, {size}: as they are they take {whole} of "
    "{free} free, which leaves too little for chats.": (
        "加载时将权重转为 {precision}，占用 {size}：原样需要 {whole}，而空闲内存为 {free}，"
        "留给对话的空间太少。"
    ),
    "backend is triton, which needs a card of NVIDIA or AMD; none is seen. Set auto.": (
        "backend 设为 triton，需要 NVIDIA 或 AMD 显卡，但未检测到。请设为 auto。"
    ),
    "{name}, is computed in plain torch with its weights as they are; choose auto for backend and "
    "quantization.": "{name} 只能用 PyTorch 按原样的权重计算；backend 和 quantization 请选择 auto。",
    # faults
    "The engine is closed; it takes nothing more.": "引擎已关闭，不再接受请求。",
    "The engine has not finished a step for {time} s.": "引擎已有 {time} 秒没有完成一步计算。",
    "The engine stopped: {kind}: {why}": "引擎已停止：{kind}：{why}",
    "the engine stopped": "引擎已停止",
    "The engine has not produced a token yet.": "引擎尚未生成任何 token。",
    "There was no memory left for {count} tokens of this answer ({why}). Other answers go on; close "
    "other programs, or load a smaller model.": (
        "内存不足，无法计算此回答的 {count} 个 token（{why}）。其他回答不受影响；请关闭其他程序，"
        "或加载较小的模型。"
    ),
    "{device} failed ({why}). Octavo has to start anew.": "{device} 出错（{why}）。Octavo 需要重新启动。",
    "The model computed no number {where}; it was stopped.": "模型{where}算出的不是数值，已停止。",
    "The model computed {value} for the token at position {position}; it was stopped.": (
        "模型在位置 {position} 的 token 上算出了 {value}，已停止。"
    ),
    "for the token at position {position}": "在位置 {position} 的 token 上",
    "{error} What was no number came out of: {place}.": "{error}不是数值的结果来自：{place}。",
    "the embedding": "嵌入层",
    "the output head": "输出层",
    "layer {layer}, queries, keys and values": "第 {layer} 层的查询、键和值",
    "layer {layer}, feed-forward": "第 {layer} 层的前馈网络",
    "layer {layer}, experts": "第 {layer} 层的专家",
    "layer {layer}, per-layer embedding": "第 {layer} 层的逐层嵌入",
    "the per-layer embeddings": "逐层嵌入",
    "layer {layer}, {kind} attention": "第 {layer} 层的注意力（{kind}）",
    "The next token could not be chosen: {kind}: {why}.": "未能选出下一个 token：{kind}：{why}。",
    "a token could not be sampled": "未能采样 token",
    # chat templates and tokenizers as they run
    "The model is no longer in memory.": "模型已不在内存中。",
    "The model's chat template failed: {why}.": "模型的对话模板出错：{why}。",
    "The model's chat template takes no role.": "模型的对话模板不接受任何角色。",
    "The process that renders chat templates did not start.": "渲染对话模板的进程未能启动。",
    "The model's chat template took longer than {time} s.": "模型的对话模板运行超过 {time} 秒。",
    "The model's chat template made the process that renders it fail.": "模型的对话模板使渲染进程崩溃。",
    "a namespace may not have {name}": "namespace 不能有 {name}",
    "it wrote more than {most} characters": "输出超过 {most} 个字符",
    "it wanted more than {most} MiB of memory": "所需内存超过 {most} MiB",
    "The model's tokenizer failed on this text": "模型的分词器无法处理这段文字",
}
