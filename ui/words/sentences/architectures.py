"""Sentences of models that are not served, or whose parts don't fit together: architectures, tensors,
vocabularies. English -> Chinese.
"""

from __future__ import annotations

ARCHITECTURES = {
    # architectures and their settings
    "its architecture is {name}; these are served: {names}": "不支持架构 {name}；支持的有：{names}",
    "its model_type is {kind}; {why}. These are served: {names}, and what transformers can compute over "
    "pages": "不支持 model_type {kind}；{why}。支持的有：{names}，以及 transformers 能按页计算的模型",
    "only transformers may know it, which is not installed: pip install '{wanted}'": (
        "也许 transformers 认识它，但未安装：pip install '{wanted}'"
    ),
    "transformers {version} has no decoder of that name, either": (
        "transformers {version} 中也没有这个名称的解码器"
    ),
    "{file} is damaged: its config.json makes no {kind} ({why}).": (
        "{file} 已损坏：config.json 不能构成 {kind}（{why}）。"
    ),
    "it has an encoder": "它有编码器",
    "it keeps more of a text than keys and values": "除键和值外，它还为文本保存其他状态",
    "it has layers of a kind of their own": "它有特殊种类的层",
    "it is put together of several models": "它由多个模型组成",
    "it cannot be told positions": "无法为它指定位置",
    "it cannot be asked for single tokens' logits": "无法只取单个 token 的 logits",
    "its ropes change as a text grows": "它的旋转位置编码随文本变长而改变",
    "its attention, or its masks, are not those of transformers' attention interface": (
        "它的注意力或掩码不符合 transformers 的注意力接口"
    ),
    "{what}: it attends to something else than the text": "{what}：它还关注文本以外的内容",
    "{what}: tokens see others than those before them": "{what}：token 能看到其前文以外的 token",
    "{what}: {name} is not understood here": "{what}：不认识 {name}",
    "its code cannot be followed with tokens and positions alone": "它的代码除 token 和位置外还需要其他输入",
    "its layers differ in heads": "它各层的头数不同",
    "it does not say how long a text may be": "它没有说明文本可以多长",
    "its tensor {name} has type {kind}; transformers is given {kinds}": (
        "它的张量 {name} 类型为 {kind}；transformers 只接受 {kinds}"
    ),
    "{family}, cannot be used: its code fails ({kind}: {why}).": (
        "无法使用 {family}：它的代码出错（{kind}：{why}）。"
    ),
    "{family}, cannot be used: computed over pages its logits are {part} of their spread away from what "
    "they are alone.": "无法使用 {family}：按页计算的 logits 与单独计算相差其分布的 {part}。",
    "{family}, by transformers": "{family}（由 transformers 计算）",
    "{name} cannot be used: its heads are {width} wide; only multiples of 16 are served.": (
        "无法使用 {name}：头宽为 {width}，只支持 16 的倍数。"
    ),
    "{name} cannot be used: it has a tensor {tensor}, which has no place in {family} as it is served.": (
        "无法使用 {name}：张量 {tensor} 不属于所支持的 {family}。"
    ),
    "{name} cannot be used: it has a tensor {tensor}, which has no place in {family}.": (
        "无法使用 {name}：张量 {tensor} 不属于 {family}。"
    ),
    "{prefix}{key} is {value}; only {wanted} is served": "{prefix}{key} 的值为 {value}，只支持 {wanted}",
    "{prefix}{key} is {value}; these are served: {names}": "{prefix}{key} 的值为 {value}，支持的有：{names}",
    "{prefix}{key} differs from layer to layer": "各层的 {prefix}{key} 不同",
    "{prefix}expert_count is {count} in a {family}": "{family} 中 {prefix}expert_count 的值为 {count}",
    "{prefix}rope.dimension_count is {value}; only {width}, a whole head, is served": (
        "{prefix}rope.dimension_count 的值为 {value}，只支持整个头宽 {width}"
    ),
    "layer_types has {name}; these are served: {names}": "layer_types 中有 {name}，支持的有：{names}",
    "a whole number from 1 to {most}": " 1 到 {most} 之间的整数",
    "a number above {least}, up to {most}": "大于 {least}、不超过 {most} 的数",
    "a list of {count} whole numbers from 1 to {most}": " {count} 个 1 到 {most} 之间整数的列表",
    "a list of {count} truths": " {count} 个 true 或 false 的列表",
    "a table of layers' head_dim and num_key_value_heads": "各层 head_dim 和 num_key_value_heads 的表",
    "such that layer {layer} has one of its kind before": "使第 {layer} 层之前有同类层的值",
    "a list of {count} numbers above 0": " {count} 个正数的列表",
    "a list of {count} zeros and ones": " {count} 个 0 和 1 的列表",
    "a list of {count}, one word for each layer": " {count} 项的列表，每层一个词",
    "such that {part} divides {whole}": "使 {part} 能整除 {whole} 的值",
    "such that pairs are turned": "能成对旋转的值",
    "larger than low_freq_factor, {value}": "大于 low_freq_factor（{value}）的数",
    "at most {most}": "不超过 {most} 的数",
    "{count}, as many layers have tensors": " {count}，与有张量的层数相同",
    "{count}, as many rows the embedding has": " {count}，与嵌入层的行数相同",
    # tensors and how they are quantized
    "{name} has no matrix {matrix}; the model is incomplete.": "{name} 缺少矩阵 {matrix}，模型不完整。",
    "{name} has no tensor {tensor}; the model is incomplete.": "{name} 缺少张量 {tensor}，模型不完整。",
    "{name} has no {head}.weight; the model is incomplete.": "{name} 缺少 {head}.weight，模型不完整。",
    "{name} has no tensor {tensor}; the file is incomplete.": "{name} 缺少张量 {tensor}，文件不完整。",
    "{name} has no tensor {tensor}{ending}; the file is incomplete.": (
        "{name} 缺少张量 {tensor}{ending}，文件不完整。"
    ),
    "{name} has no tensor {tensor}.weight; the file is incomplete.": (
        "{name} 缺少张量 {tensor}.weight，文件不完整。"
    ),
    "{name} is damaged: {tensor} has values that are not above 0.": (
        "{name} 已损坏：{tensor} 中有不大于 0 的值。"
    ),
    "{name}: tensor {tensor} is {shape}, expected [{wanted}].": (
        "{name}：张量 {tensor} 的形状为 {shape}，应为 [{wanted}]。"
    ),
    "{name}: tensor {tensor} is {shape}, expected [{wanted}]{which}.": (
        "{name}：张量 {tensor} 的形状为 {shape}，应为 [{wanted}]{which}。"
    ),
    " for its matrix {number}": "（第 {number} 个矩阵）",
    "{name}: tensor {tensor} is {shape}, expected {wanted}.": (
        "{name}：张量 {tensor} 的形状为 {shape}，应为 {wanted}。"
    ),
    "{name}: {tensor} has {count} rows, {wanted} are needed.": (
        "{name}：{tensor} 有 {count} 行，需要 {wanted} 行。"
    ),
    "{name}: {tensor} has type {kind}; these are served: {kinds}.": (
        "{name}：{tensor} 的类型为 {kind}，支持的有：{kinds}。"
    ),
    "Tensors of type {kind} are not served; these are: {kinds}.": (
        "不支持 {kind} 类型的张量；支持的有：{kinds}。"
    ),
    "Tensors of type {kind} are not served.": "不支持 {kind} 类型的张量。",
    "has {count} words for {inputs} inputs; 4 and 8 bits are served": (
        "每 {inputs} 个输入有 {count} 个字，只支持 4 位和 8 位"
    ),
    "has {count} words for {inputs} inputs, {bits} bits each; 4 and 8 are served": (
        "每 {inputs} 个输入有 {count} 个字，每个 {bits} 位，只支持 4 位和 8 位"
    ),
    "has {scales} scales for {weights} weights and names no block size": (
        "有 {scales} 个缩放值对应 {weights} 的权重，但未说明块大小"
    ),
    "is packed as {form}, which is not served; these are: {forms}": (
        "打包方式 {form} 不受支持；支持的有：{forms}"
    ),
    "is packed as AWQ's {form}, which is not served; 'gemm' is": (
        "AWQ 的打包方式 {form} 不受支持，只支持 'gemm'"
    ),
    "Only a model's own files can be {wanted}, and {found}; choose auto, or its {edition} edition.": (
        "只有模型自己的文件才能是 {wanted}，而{found}；请选择 auto，或它的 {edition} 版本。"
    ),
    "these are {method}": "这些是 {method}",
    "these do not say so": "这些文件没有这样注明",
    "The model is quantized with {method}, which is not served; its edition as GGUF or with one of these "
    "is: {names}.": "模型的量化方式 {method} 不受支持；可改用它的 GGUF 版本，或以下量化方式之一：{names}。",
    "an unnamed method": "（未注明）",
    "The model's compressed-tensors layout is {layout}, which is not served; these are: {names}.": (
        "模型的 compressed-tensors 布局 {layout} 不受支持；支持的有：{names}。"
    ),
    "The model is damaged: {groups} groups do not divide {inputs} inputs.": (
        "模型已损坏：{groups} 个组不能整除 {inputs} 个输入。"
    ),
    "The model is damaged: groups {lowest} to {highest} are named, it has {groups}.": (
        "模型已损坏：引用了第 {lowest} 到 {highest} 组，而只有 {groups} 组。"
    ),
    "The model is damaged: {broken} of {count} {what} are no finite numbers.": (
        "模型已损坏：{count} 个{what}中有 {broken} 个不是有限的数。"
    ),
    "The model is damaged: a scale is {value}; none is above {most}.": (
        "模型已损坏：某个缩放值为 {value}，不应超过 {most}。"
    ),
    "The model is damaged: its quantization_config is {value}, not a table.": (
        "模型已损坏：quantization_config 的值为 {value}，不是表。"
    ),
    "weights of {name}": "{name} 的权重",
    "values of {name}": "{name} 的值",
    "weights of a matrix": "矩阵权重",
    "scales of a matrix": "矩阵缩放值",
    # vocabularies
    "{name}: the tokenizer has {count} tokens and the model knows {known}; the files do not belong "
    "together.": "{name}：分词器有 {count} 个 token，而模型认识 {known} 个；这些文件不属于同一个模型。",
    "{name} has no vocabulary; the file is incomplete.": "{name} 没有词表，文件不完整。",
    "{name} is damaged: {count} tokens and {rows} rows of token_embd.weight.": (
        "{name} 已损坏：有 {count} 个 token，而 token_embd.weight 有 {rows} 行。"
    ),
    "The tokenizer is of the kind {kind}; {names} are served.": (
        "分词器类型 {kind} 不受支持，支持的有：{names}。"
    ),
    "The tokenizer is of the kind {kind}; only BPE is served.": "分词器类型 {kind} 不受支持，只支持 BPE。",
    "The pre-tokenizer {name} is not known; known are {names}.": "不认识预分词器 {name}；认识的有：{names}。",
    "Of the vocabulary's {count} tokens only {differ} differ.": (
        "词表的 {count} 个 token 中只有 {differ} 个互不相同。"
    ),
    "The vocabulary has no {what}.": "词表没有 {what}。",
    "The model wants prompts to begin with a bos token but names none.": (
        "模型要求提示以 bos token 开头，但没有指明是哪个。"
    ),
    "The vocabulary calls {token} a byte.": "词表把 {token} 当作字节。",
    "The vocabulary and its merges do not fit together": "词表与合并规则不一致",
    "The vocabulary and its scores do not fit together": "词表与分值不一致",
    "The vocabulary's pieces are too long: {count} steps, at most {most}.": (
        "词表的词段过长：需 {count} 步，最多 {most} 步。"
    ),
    "tokenizer.{key} is {kind}; it must be {wanted}.": "tokenizer.{key} 的类型为 {kind}，应为 {wanted}。",
    "tokenizer.{key} is not a list of {kind}.": "tokenizer.{key} 不是 {kind} 列表。",
    "tokenizer.{key} holds more than {kind}.": "tokenizer.{key} 中有 {kind} 以外的内容。",
    "tokenizer.{key} has {count} entries for {wanted} tokens.": (
        "tokenizer.{key} 有 {count} 项，而 token 有 {wanted} 个。"
    ),
    "The {name} token is number {value}; the vocabulary has {count}.": (
        "{name} token 的编号为 {value}，而词表只有 {count} 个。"
    ),
    "The model has no tokenizer.json, without which its text cannot be read; older kinds of files "
    "(tokenizer.model, vocab.json) are not served.": (
        "模型缺少 tokenizer.json，无法处理文字；不支持旧式文件（tokenizer.model、vocab.json）。"
    ),
    "tokenizer.json holds about {count} values; at most {most} are read.": (
        "tokenizer.json 约有 {count} 个值，最多读取 {most} 个。"
    ),
    "The tokenizer normalizes text by a table (Precompiled), which is not served.": (
        "不支持用表（Precompiled）规范化文本的分词器。"
    ),
    "tokenizer.json is damaged": "tokenizer.json 已损坏",
    "tokenizer.json is damaged: it spells plain letters as escapes.": (
        "tokenizer.json 已损坏：它用转义符书写普通字母。"
    ),
    "tokenizer.json is damaged: a rule has {put} characters, and together they make a text {growth} times as "
    "long; at most {most} and {factor} are taken.": (
        "tokenizer.json 已损坏：一条规则有 {put} 个字符，合起来会使文本变长 {growth} 倍；"
        "最多接受 {most} 和 {factor}。"
    ),
    "tokenizer.json is damaged: {count} tokens have ids up to {most}.": (
        "tokenizer.json 已损坏：{count} 个 token 的编号最大为 {most}。"
    ),
    "The tokenizer spells tokens neither as bytes nor with {sign} for a space; only these are served.": (
        "分词器既不按字节、也不用 {sign} 代表空格；只支持这两种。"
    ),
    "The model's {key} is {value}, not a token's text.": "模型的 {key} 值为 {value}，不是 token 的文本。",
    "The model has chat templates named {names}, none of them default.": (
        "模型有名为 {names} 的对话模板，但没有默认模板。"
    ),
}
